//! Every public item has an example. A new item without one fails this test.
//!
//! A function, type or trait has an example of its own. A method may share that of its type if it is called there.

use std::fs;
use std::path::{Path, PathBuf};

/// An item with its documentation.
#[derive(Debug)]
struct Item {
    place: String,
    /// The type that a method belongs to.
    of: Option<String>,
    name: String,
    docs: String,
}

impl Item {
    fn example(&self) -> String {
        let blocks = self.docs.split("```").skip(1).step_by(2);
        blocks.collect()
    }

    fn is_in_example_of(&self, other: &Self) -> bool {
        let example = other.example();
        let calls = [format!(".{}(", self.name), format!("::{}(", self.name)];
        other.of.is_none()
            && self.of.as_ref() == Some(&other.name)
            && calls.iter().any(|call| example.contains(call))
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Returns the name in `pub fn name…` or `pub struct Name…` if the line declares something public.
fn declared(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let rest = rest
        .trim_start_matches("async ")
        .trim_start_matches("const ");
    let kinds = ["fn ", "struct ", "enum ", "trait ", "type ", "static "];
    let rest = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    rest.get(..end.unwrap_or(rest.len()))
}

/// Returns the type in `impl Type {` or `impl Type<'_> {`. Methods of trait impls are documented at the trait.
fn inherent(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl ")?;
    let end = rest.find([' ', '<'])?;
    (!rest.contains(" for ")).then(|| rest.get(..end)).flatten()
}

fn items(path: &Path) -> Vec<Item> {
    let text = fs::read_to_string(path).unwrap();
    let (mut items, mut docs, mut of, mut hidden) = (Vec::new(), String::new(), None, false);
    for (number, line) in text.lines().enumerate() {
        if line == "mod tests {" {
            break;
        }
        let trimmed = line.trim_start();
        if let Some(doc) = trimmed.strip_prefix("///") {
            docs.push_str(doc);
            docs.push('\n');
        } else if trimmed.starts_with("#[") {
            hidden |= trimmed.starts_with("#[doc(hidden)]");
        } else {
            if let Some(name) = declared(line).filter(|_| !hidden) {
                items.push(Item {
                    place: format!("{}:{}", path.display(), number + 1),
                    of: of.clone().filter(|_| line.starts_with("    ")),
                    name: name.to_owned(),
                    docs: std::mem::take(&mut docs),
                });
            }
            if !line.starts_with(' ') && !line.is_empty() {
                of = inherent(line).map(str::to_owned);
            }
            docs.clear();
            hidden = false;
        }
    }
    items
}

#[test]
fn every_public_item_has_an_example() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    sources(&folder.join("src"), &mut paths);
    // Items that the crate re-exports by name.
    for file in ["source.rs", "error.rs"] {
        paths.push(folder.join("../stack-sampler/src").join(file));
    }
    let items: Vec<Item> = paths.iter().flat_map(|path| items(path)).collect();
    assert!(items.len() > 80, "too few items found: {items:#?}");
    let bare = items.iter().filter(|item| {
        item.example().is_empty() && !items.iter().any(|other| item.is_in_example_of(other))
    });
    let bare: Vec<String> = bare
        .map(|item| format!("{} {}", item.place, item.name))
        .collect();
    assert_eq!(bare, [] as [String; 0], "items without an example");
}

#[test]
fn the_readme_shows_the_first_example() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(folder.join(path)).unwrap();
    let example = read("examples/first.rs");
    let (_, program) = example.split_once("\n\n").unwrap();
    assert!(
        read("README.md").contains(program),
        "copy examples/first.rs to the README"
    );
}
