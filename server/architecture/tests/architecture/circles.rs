//! No two files of different folders import each other, directly or through others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::rules::sources;

/// Source files by module path, such as `alerts::judge`.
type Files = BTreeMap<String, String>;

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
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
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

fn reachable<'f>(from: &'f str, edges: &'f BTreeMap<&str, BTreeSet<String>>) -> BTreeSet<&'f str> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        for next in edges.get(module).into_iter().flatten() {
            if seen.insert(next.as_str()) {
                open.push(next);
            }
        }
    }
    seen
}

#[test]
fn files_of_different_folders_do_not_import_each_other() {
    let manifests = sources("", &["toml"]).into_iter();
    let manifests = manifests.filter(|(path, _)| path.ends_with("Cargo.toml"));
    let crates = manifests.map(|(path, _)| path.with_file_name("src"));
    let mut imports = 0;
    for source in crates.filter(|source| source.is_dir()) {
        let mut files = Files::new();
        read(&source, "", &mut files);
        let source = source.display();
        let edges: BTreeMap<&str, BTreeSet<String>> = files
            .iter()
            .map(|(module, text)| {
                let paths = paths(&code(text)).into_iter();
                let targets = paths.filter_map(|path| target(&path, module, &files));
                (module.as_str(), targets.collect())
            })
            .collect();
        imports += edges.values().map(BTreeSet::len).sum::<usize>();
        let reach: BTreeMap<&str, BTreeSet<&str>> = edges
            .keys()
            .map(|module| (*module, reachable(module, &edges)))
            .collect();
        for (module, reached) in &reach {
            let back = reached
                .iter()
                .filter(|other| reach[*other].contains(module));
            let elsewhere = |other: &&&str| folder(other, &files) != folder(module, &files);
            let circle: Vec<_> = back.filter(elsewhere).collect();
            assert!(
                circle.is_empty(),
                "{source}: {module} and {circle:?} import each other"
            );
        }
    }
    assert!(imports > 2_000, "only {imports} imports are found");
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
