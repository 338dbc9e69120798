//! No two files import each other, directly or through others, except a parent and its children.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::rules::sources;

/// Source files by module path, such as `alerts::judge`.
type Files = BTreeMap<String, String>;
/// The files that each file of a crate imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

fn read(folder: &Path, module: &str, files: &mut Files) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let name = match module {
            "" => stem.to_owned(),
            module => format!("{module}::{stem}"),
        };
        if path.is_dir() {
            read(&path, &name, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
}

/// Returns the code without comments and unit tests.
fn code(text: &str) -> String {
    let tests = ["", "pub(crate) "].map(|public| format!("#[cfg(test)]\n{public}mod tests {{"));
    let ends = tests.iter().filter_map(|tests| text.find(tests));
    let (text, _) = text.split_at(ends.min().unwrap_or(text.len()));
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join(" ")
}

/// Expands `a::{b, c::{d, e}}` to its paths.
fn expand(tree: &str, paths: &mut Vec<String>) {
    let Some((head, rest)) = tree.split_once('{') else {
        paths.push(tree.trim().to_owned());
        return;
    };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let (mut depth, mut start) = (0, 0);
    let ends = inner.char_indices().chain([(inner.len(), ',')]);
    for (at, letter) in ends {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = inner.get(start..at).unwrap_or_default().trim();
                if !part.is_empty() {
                    expand(&format!("{}{part}", head.trim()), paths);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// Returns the paths that start with `crate::` or `super::`.
fn paths(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let (mut rest, ends) = (code, |c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    while let Some(at) = rest
        .find("crate::")
        .into_iter()
        .chain(rest.find("super::"))
        .min()
    {
        let (before, path) = rest.split_at(at);
        let is_use = before.trim_end().ends_with("use");
        let end = if is_use {
            path.find(';')
        } else {
            path.find(ends)
        };
        let (path, more) = path.split_at(end.unwrap_or(path.len()));
        expand(path, &mut paths);
        rest = more;
    }
    paths
}

/// Returns the file that a path leads to, if it is another file of the crate.
fn target(path: &str, from: &str, files: &Files) -> Option<String> {
    let mut names: Vec<&str> = match path.strip_prefix("crate::") {
        Some(rest) => rest.split("::").collect(),
        None => {
            let ups = path.split("::").take_while(|name| *name == "super").count();
            let base: Vec<&str> = from.split("::").collect();
            let base = base.get(..base.len().checked_sub(ups)?)?;
            let rest = path.split("::").skip(ups);
            base.iter().copied().chain(rest).collect()
        }
    };
    while !names.is_empty() {
        let module = names.join("::");
        if files.contains_key(&module) {
            return (module != from).then_some(module);
        }
        names.pop();
    }
    None
}

/// Returns the folder of a file. A file with a folder of its own name belongs to that folder.
fn folder<'m>(module: &'m str, files: &Files) -> &'m str {
    let inside = format!("{module}::");
    let owns_folder = files.keys().any(|other| other.starts_with(&inside));
    match module.rsplit_once("::") {
        _ if owns_folder => module,
        Some((folder, _)) => folder,
        None => "",
    }
}

/// Returns the file whose folder a file is in.
fn parent(module: &str) -> &str {
    module.rsplit_once("::").map_or("", |(parent, _)| parent)
}

struct Crate {
    folder: PathBuf,
    files: Files,
    imports: Imports,
}

fn crates() -> Vec<Crate> {
    let manifests = sources("", &["toml"]).into_iter();
    let manifests = manifests.filter(|(path, _)| path.ends_with("Cargo.toml"));
    let folders = manifests.map(|(path, _)| path.parent().unwrap().to_owned());
    let with_code = folders.filter(|folder| folder.join("src").is_dir());
    let found = with_code.map(|folder| {
        let mut files = Files::new();
        read(&folder.join("src"), "", &mut files);
        let imports = files.iter().map(|(module, text)| {
            let paths = paths(&code(text)).into_iter();
            let targets = paths.filter_map(|path| target(&path, module, &files));
            (module.clone(), targets.collect())
        });
        let imports = imports.collect();
        Crate {
            folder,
            files,
            imports,
        }
    });
    found.collect()
}

fn reachable<'i>(from: &str, imports: &'i Imports) -> BTreeSet<&'i str> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        for next in imports.get(module).into_iter().flatten() {
            if seen.insert(next.as_str()) {
                open.push(next);
            }
        }
    }
    seen
}

/// Returns the other files that each file imports and is imported by, directly or through others.
fn circles(imports: &Imports) -> BTreeMap<&str, BTreeSet<&str>> {
    let modules = imports.keys().map(String::as_str);
    let reach: BTreeMap<&str, BTreeSet<&str>> = modules
        .map(|module| (module, reachable(module, imports)))
        .collect();
    let mut circles = BTreeMap::new();
    for (module, reached) in &reach {
        let others = reached.iter().copied();
        let circle = others.filter(|other| other != module && reach[other].contains(module));
        circles.insert(*module, circle.collect());
    }
    circles
}

#[test]
fn files_of_different_folders_do_not_import_each_other() {
    let mut all = 0;
    for Crate {
        folder: place,
        files,
        imports,
    } in &crates()
    {
        all += imports.values().map(BTreeSet::len).sum::<usize>();
        for (module, mut circle) in circles(imports) {
            circle.retain(|other| folder(other, files) != folder(module, files));
            let place = place.display();
            assert!(
                circle.is_empty(),
                "{place}: {module} and {circle:?} import each other"
            );
        }
    }
    assert!(all > 2_000, "only {all} imports are found");
}

#[test]
fn only_a_parent_and_its_children_import_each_other() {
    for Crate {
        folder,
        mut imports,
        ..
    } in crates()
    {
        for (module, targets) in &mut imports {
            targets.retain(|target| parent(target) != module && parent(module) != target);
        }
        for (module, circle) in circles(&imports) {
            let place = folder.display();
            assert!(
                circle.is_empty(),
                "{place}: {module} and {circle:?} import each other: move what both need to a file of its own"
            );
        }
    }
}

#[test]
fn imports_are_found() {
    let code = "use crate::a::{B, c::{D, E}}; use super::f; fn g() { crate::h::i(); }";
    let expected = [
        "crate::a::B",
        "crate::a::c::D",
        "crate::a::c::E",
        "super::f",
        "crate::h::i",
    ];
    assert_eq!(paths(code), expected);
}
