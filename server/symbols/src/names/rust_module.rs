//! The module of a Rust function whose debug information has only the last part of its name.
//!
//! With `debug = "line-tables-only"`, this concerns each inlined function. Files follow modules, so the path of the file names the module.

/// Folders whose files and folders are crates of their own.
const OF_CRATES: [&str; 3] = ["examples", "tests", "benches"];

/// Returns the module of the functions in a file: `…/tokio-1.54.1/src/runtime/park.rs` → `tokio::runtime::park`.
pub(super) fn module_of(file: &str) -> Option<String> {
    let file = file.strip_suffix(".rs")?.replace('\\', "/");
    let parts: Vec<&str> = file.split('/').collect();
    let is_root = |part: &str| part == "src" || OF_CRATES.contains(&part);
    let root = parts.iter().rposition(|part| is_root(part))?;
    let (before, after) = parts.split_at_checked(root)?;
    let (root, mut after) = after.split_first()?;
    let mut name = (*root == "src").then(|| crate_of(before)).flatten();
    // Each of these is a program: `src/bin/shop.rs`, `src/bin/shop/main.rs`, `examples/shop.rs`.
    if let (["bin", program, ..], "src") = (after, *root) {
        name = Some(program.replace('-', "_"));
        after = after.get(2..)?;
    } else if *root != "src" {
        let (program, rest) = after.split_first()?;
        name = Some(program.replace('-', "_"));
        after = rest;
    }
    let modules = match after {
        ["lib" | "main"] => &[],
        [modules @ .., "mod"] => modules,
        modules => modules,
    };
    let name = name.filter(|name| !name.is_empty())?;
    let parts: Vec<&str> = [name.as_str()]
        .into_iter()
        .chain(modules.iter().copied())
        .collect();
    Some(parts.join("::"))
}

/// Returns the crate in a folder, without the version that is part of folders of registries, and the hash of those of git.
fn crate_of(folder: &[&str]) -> Option<String> {
    let name = match folder {
        [.., "checkouts", repository, _revision] => repository.rsplit_once('-')?.0,
        [.., name] => {
            let mut parts = name.match_indices('-').map(|(place, _)| place);
            let version = parts.find(|place| {
                let version = name.get(place + 1..).unwrap_or_default();
                version.starts_with(|letter: char| letter.is_ascii_digit()) && version.contains('.')
            });
            name.get(..version.unwrap_or(name.len()))?
        }
        [] => return None,
    };
    Some(name.replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::module_of;

    #[test]
    fn files_tell_their_modules() {
        let cases = [
            (
                "/home/me/.cargo/registry/src/index-1949cf8c6b5b557f/tokio-1.54.1/src/runtime/park.rs",
                "tokio::runtime::park",
            ),
            (
                "/home/me/.cargo/registry/src/index-1949cf8c6b5b557f/serde_json-1.0.154/src/lib.rs",
                "serde_json",
            ),
            (
                "/rustc/59807616e1fa/library/std/src/sync/poison/mutex.rs",
                "std::sync::poison::mutex",
            ),
            (
                "/rustc/59807616e1fa/library/core/src/iter/traits/mod.rs",
                "core::iter::traits",
            ),
            (
                "/home/me/.cargo/git/checkouts/tokio-rs-0a1b2c3d/4e5f6a7/src/task.rs",
                "tokio_rs::task",
            ),
            ("/build/my-shop/src/cart/pay.rs", "my_shop::cart::pay"),
            ("C:\\build\\shop\\src\\main.rs", "shop"),
            ("/build/shop/src/bin/admin-tool.rs", "admin_tool"),
            ("/build/shop/src/bin/admin/report.rs", "admin::report"),
            ("/build/unjank/examples/shop/main.rs", "shop"),
            ("/build/unjank/examples/shop/stalls.rs", "shop::stalls"),
            ("/build/unjank/examples/shop_slow.rs", "shop_slow"),
        ];
        for (file, module) in cases {
            assert_eq!(module_of(file).as_deref(), Some(module), "{file}");
        }
        for file in ["main.rs", "/build/shop/cart.c", "src/main.rs", ""] {
            assert_eq!(module_of(file), None, "{file}");
        }
    }
}
