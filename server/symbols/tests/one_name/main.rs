//! A function has one name, whatever built it: manglings, levels of optimization, codegen units, link-time optimization.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "a test that does nothing says so")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use unjank_symbols::{LookupFile, LookupKind, convert};

/// By line of the declaration: the names that the functions of a program have.
type Names = BTreeMap<u32, BTreeSet<String>>;

/// Builds a source. Returns `None` if the compiler does not know the options.
fn build(compiler: &str, source: (&str, &str), options: &[&str]) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let (name, content) = source;
    std::fs::write(folder.path().join(name), content).unwrap();
    let output = Command::new(compiler)
        .args(options)
        .args(["-o", "shop", name])
        // Older manglings are an unstable option.
        .env("RUSTC_BOOTSTRAP", "1")
        .current_dir(folder.path())
        .output()
        .unwrap();
    if !output.status.success() {
        eprintln!(
            "skipped {options:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        return None;
    }
    Some(std::fs::read(folder.path().join("shop")).unwrap())
}

/// Returns the names of all functions of a program, by the lines of the source in which they begin.
fn names(program: &[u8], source: &str) -> Names {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop");
    std::fs::write(&path, program).unwrap();
    let mut converted = Vec::new();
    convert(program, 0, &mut converted).unwrap();
    let lookup = LookupFile::from_bytes(&converted, LookupKind::Native).unwrap();
    let mut names = Names::new();
    for address in functions(&path) {
        let locations = lookup.native(address);
        let Some(outermost) = locations.last() else {
            continue;
        };
        assert!(
            !outermost
                .function
                .ends_with(|end: char| end.is_ascii_digit())
                || !outermost.function.contains('.'),
            "{outermost:?}"
        );
        if outermost.file.ends_with(source) {
            names
                .entry(outermost.line)
                .or_default()
                .insert(outermost.function.clone());
        }
    }
    names
}

fn functions(program: &Path) -> Vec<u64> {
    let output = Command::new("nm").arg(program).output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    let function = |line: &str| {
        let (address, rest) = line.split_once(' ')?;
        rest.starts_with(['t', 'T', 'W'])
            .then(|| u64::from_str_radix(address, 16).ok())?
    };
    listed.lines().filter_map(function).collect()
}

/// Builds a source in several ways. Returns the names of all builds.
fn names_of_all(
    compiler: &str,
    source: (&str, &str),
    builds: &[&[&str]],
    always: &[&str],
) -> Names {
    let mut all = Names::new();
    let mut built = 0;
    for options in builds {
        let Some(program) = build(compiler, source, &[always, options].concat()) else {
            continue;
        };
        built += 1;
        for (line, names) in names(&program, source.0) {
            all.entry(line).or_default().extend(names);
        }
    }
    assert!(built > 1, "no two builds of {}", source.0);
    all
}

fn check(names: &Names, expected: &[&str]) {
    let several: Vec<_> = names.iter().filter(|(_, names)| names.len() != 1).collect();
    assert!(several.is_empty(), "{several:#?}");
    let known: BTreeSet<&str> = names.values().flatten().map(String::as_str).collect();
    for name in expected {
        assert!(known.contains(name), "no {name} in {known:#?}");
    }
}

#[test]
fn functions_of_rust_have_one_name_in_all_builds() {
    let source = ("shop.rs", include_str!("shop.rs"));
    let legacy = ["-Zunstable-options", "-Csymbol-mangling-version=legacy"];
    let builds: [&[&str]; 8] = [
        &["-Csymbol-mangling-version=v0"],
        &["-Csymbol-mangling-version=v0", "-O"],
        &[
            "-Csymbol-mangling-version=v0",
            "-O",
            "-Clto=fat",
            "-Ccodegen-units=1",
        ],
        &[
            "-Csymbol-mangling-version=v0",
            "-Copt-level=1",
            "-Ccodegen-units=16",
        ],
        &legacy,
        &[legacy[0], legacy[1], "-O"],
        &[legacy[0], legacy[1], "-O", "-Clto=fat", "-Ccodegen-units=1"],
        &[legacy[0], legacy[1], "-Copt-level=s", "-Ccodegen-units=16"],
    ];
    let always = ["-g", "--edition=2024", "-Clink-arg=-Wl,--build-id=sha1"];
    let names = names_of_all("rustc", source, &builds, &always);
    let expected = [
        "shop::dep::Shape::twice",
        "shop::dep::Shape::times",
        "shop::dep::Shape::named",
        "<shop::dep::Bag as shop::dep::Shape>::area",
        "<u32 as shop::dep::Shape>::area",
        "<(_, _) as shop::dep::Shape>::area",
        "<fn(_) as shop::dep::Shape>::area",
        "<[_; _] as shop::dep::Shape>::area",
        "<&_ as shop::dep::Shape>::area",
        "<alloc::boxed::Box as shop::dep::Shape>::area",
        "<shop::dep::Held as shop::dep::Shape>::area",
        "<dyn shop::dep::Shape>::dynamic",
        "shop::dep::Bag::far",
        "shop::dep::Held::count",
        "shop::shapes::Handler::function",
        "shop::shapes::Handler::tuple",
        "shop::shapes::Handler::pointer",
        "shop::shapes::Handler::slice",
        "shop::shapes::Pair::emit",
        "shop::shapes::Pair::borrowed",
        "shop::block::{{constant}}::inside",
        "shop::generic",
        "shop::letter",
        "shop::constant",
    ];
    check(&names, &expected);
}

#[test]
fn functions_of_cpp_have_one_name_in_all_builds() {
    let source = ("shop.cc", include_str!("shop.cc"));
    let builds: [&[&str]; 4] = [&["-O0"], &["-O2"], &["-O2", "-flto"], &["-Os"]];
    let always = ["-g", "-std=c++17", "-Wl,--build-id=sha1"];
    let names = names_of_all("c++", source, &builds, &always);
    let expected = [
        "shop::Money::total",
        "shop::Money::plus",
        "shop::Money::operator==",
        "shop::Money::operator[]",
        "shop::Money::operator()",
        "shop::operator+",
        "shop::operator%",
        "shop::operator,",
        "shop::operator<<",
        "shop::operator\"\"_eur",
        "shop::constant",
    ];
    check(&names, &expected);
}
