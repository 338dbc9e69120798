//! Links from frames to source lines: the URL template of a project, and the rules that turn the paths of symbol files into paths
//! of its repository. Pure. Queries compute the links; the control database stores the document.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, utf8_percent_encode};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::link_template::{self, Part, TemplateError, VALUE};

const MAX_RULES: usize = 20;
const MAX_PREFIX_CHARS: usize = 300;

/// What must be encoded in a path: its separators stay.
const PATH: &AsciiSet = &VALUE.remove(b'/');

/// Folders with code of others: the standard library of Rust, and what package managers download.
const LIBRARY_FOLDERS: [&str; 8] = [
    "/rustc/",
    "/.rustup/",
    "/.cargo/registry/",
    "/.cargo/git/",
    "/go/pkg/mod/",
    "/node_modules/",
    "/.pub-cache/",
    "/Pods/",
];

/// How frames link to source lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = SourceLinks)]
pub struct SourceLinksDocument {
    /// An address with `http` or `https` in which the server replaces `{path}`, `{line}`, `{version}` (the version of the app) and
    /// `{build}` (its build number). `{path}` is required. Empty: no links.
    #[schema(
        max_length = 500,
        example = "https://github.com/acme/shop/blob/v{version}/{path}#L{line}"
    )]
    pub template: String,
    /// The first rule whose prefix matches a path applies. At most 20.
    #[schema(max_items = 20)]
    #[serde(deserialize_with = "objects")]
    pub rules: Vec<PathRule>,
}

/// Replaces the beginning of a path. For Java and Kotlin, the path is the folder of the package with the file:
/// `com/example/shop/Cart.kt`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PathRule {
    #[schema(min_length = 1, max_length = 300, example = "/builds/shop/")]
    pub prefix: String,
    /// The beginning of the path in the repository. Empty: the prefix is removed.
    #[serde(default)]
    #[schema(max_length = 300, example = "app/src/main/java/")]
    pub replacement: String,
}

/// A list of objects, none of them written as a list of its values.
fn objects<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathRule>, D::Error> {
    let objects = Vec::<Map<String, Value>>::deserialize(deserializer)?;
    let rules = objects
        .into_iter()
        .map(|object| PathRule::deserialize(Value::Object(object)));
    rules
        .collect::<Result<_, _>>()
        .map_err(serde::de::Error::custom)
}

/// What is wrong with a document.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceLinksError {
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("there can be at most {MAX_RULES} rules")]
    TooManyRules,
    #[error(
        "the prefix of rule {0} must have 1 to {MAX_PREFIX_CHARS} characters, without control characters"
    )]
    Prefix(usize),
    #[error(
        "the replacement of rule {0} must have at most {MAX_PREFIX_CHARS} characters, without control characters"
    )]
    Replacement(usize),
}

/// Where the code of a frame is, as a symbol file or a device names it.
#[derive(Clone, Copy, Debug, Default)]
pub struct CodeLocation<'a> {
    /// `com.example.shop.Cart`. Empty in languages without classes.
    pub class: &'a str,
    pub file: &'a str,
    /// 0 if unknown.
    pub line: u32,
}

/// The app in which a frame ran.
#[derive(Clone, Copy, Debug, Default)]
pub struct AppBuild<'a> {
    /// Empty if unknown.
    pub version: &'a str,
    /// The build number of the app. 0 if unknown.
    pub number: u64,
}

/// Why a frame has no link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = NoSourceLink)]
pub enum NoLink {
    /// The project has no template.
    NoTemplate,
    /// The frame has no source file.
    NoFile,
    /// No rule matches, and the path does not begin in the repository: it is absolute, or that of a Java or Kotlin package.
    NoRule,
    /// The file belongs to the standard library or to a downloaded package.
    Library,
    /// The template needs the line.
    NoLine,
    /// The template needs the version of the app.
    NoVersion,
    /// The template needs the build number of the app.
    NoBuild,
}

/// What the server puts into an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Path,
    Line,
    Version,
    Build,
}

impl link_template::Placeholder for Slot {
    const ALL: &'static [(&'static str, Self)] = &[
        ("{path}", Self::Path),
        ("{line}", Self::Line),
        ("{version}", Self::Version),
        ("{build}", Self::Build),
    ];
    const EXAMPLE: &'static str = "https://github.com/";
}

/// A document, ready to be used.
#[derive(Clone, Debug, Default)]
pub struct SourceLinks {
    document: SourceLinksDocument,
    parts: Vec<Part<Slot>>,
    /// The parts before the `#`: the link when the line is unknown.
    before_fragment: Vec<Part<Slot>>,
}

impl SourceLinks {
    pub fn new(mut document: SourceLinksDocument) -> Result<Self, SourceLinksError> {
        document.template = document.template.trim().to_owned();
        check_rules(&document.rules)?;
        let template = &document.template;
        let parts = link_template::parse(template)?;
        let (address, _) = template.split_once('#').unwrap_or((template, ""));
        let before_fragment = link_template::split(address)?;
        Ok(Self {
            document,
            parts,
            before_fragment,
        })
    }

    #[must_use]
    pub fn document(&self) -> &SourceLinksDocument {
        &self.document
    }

    /// Whether links depend on the version of the app, and whether they depend on its build number.
    #[must_use]
    pub fn needs(&self) -> (bool, bool) {
        let has = |value| self.parts.contains(&Part::Value(value));
        (has(Slot::Version), has(Slot::Build))
    }

    /// Returns the path of a location in the repository.
    pub fn path(&self, location: CodeLocation<'_>) -> Result<String, NoLink> {
        let (path, is_java) = path_of(location).ok_or(NoLink::NoFile)?;
        let rules = self.document.rules.iter();
        let matched = rules.filter_map(|rule| {
            let rest = path.strip_prefix(&rule.prefix.replace('\\', "/"))?;
            Some((rule.replacement.as_str(), rest))
        });
        // An absolute path needs a rule, and so does a package, whose folder is never at the root of a repository.
        let is_foreign = is_java || path.starts_with('/') || path.contains(':');
        let (start, rest) = match matched.into_iter().next() {
            Some(matched) => matched,
            None if is_foreign && is_of_library(&path) => return Err(NoLink::Library),
            None if is_foreign => return Err(NoLink::NoRule),
            None => ("", path.as_str()),
        };
        if is_of_library(rest) {
            return Err(NoLink::Library);
        }
        normal(&format!("{start}{rest}"))
            .map(|path| path.trim_start_matches('/').to_owned())
            .filter(|path| !path.is_empty())
            .ok_or(NoLink::NoRule)
    }

    /// Returns the address of a location.
    pub fn url(&self, location: CodeLocation<'_>, app: AppBuild<'_>) -> Result<String, NoLink> {
        if self.parts.is_empty() {
            return Err(NoLink::NoTemplate);
        }
        let path = self.path(location)?;
        let is_anchor = !self.before_fragment.contains(&Part::Value(Slot::Line));
        let parts = match location.line {
            0 if is_anchor => &self.before_fragment,
            _ => &self.parts,
        };
        let mut url = String::new();
        for part in parts {
            match part {
                Part::Text(text) => url.push_str(text),
                Part::Value(Slot::Path) => url.extend(utf8_percent_encode(&path, PATH)),
                Part::Value(Slot::Line) if location.line == 0 => return Err(NoLink::NoLine),
                Part::Value(Slot::Line) => drop(write!(url, "{}", location.line)),
                // A version of dots would be another folder, even if it were encoded.
                Part::Value(Slot::Version) if app.version.trim_matches('.').is_empty() => {
                    return Err(NoLink::NoVersion);
                }
                Part::Value(Slot::Version) => url.extend(utf8_percent_encode(app.version, VALUE)),
                Part::Value(Slot::Build) if app.number == 0 => return Err(NoLink::NoBuild),
                Part::Value(Slot::Build) => drop(write!(url, "{}", app.number)),
            }
        }
        Ok(url)
    }
}

fn check_rules(rules: &[PathRule]) -> Result<(), SourceLinksError> {
    if rules.len() > MAX_RULES {
        return Err(SourceLinksError::TooManyRules);
    }
    let fits =
        |text: &str| text.chars().count() <= MAX_PREFIX_CHARS && !text.contains(char::is_control);
    for (place, rule) in (1..).zip(rules) {
        if rule.prefix.is_empty() || !fits(&rule.prefix) {
            return Err(SourceLinksError::Prefix(place));
        }
        if !fits(&rule.replacement) {
            return Err(SourceLinksError::Replacement(place));
        }
    }
    Ok(())
}

/// Returns the path of a location, with `/` as separator, and whether it is that of a Java or Kotlin package.
fn path_of(location: CodeLocation<'_>) -> Option<(String, bool)> {
    let file = location.file.replace('\\', "/");
    let is_java =
        !location.class.is_empty() && !location.class.contains("::") && !file.contains('/');
    // `r8-map-id-…`, `SourceFile` and `Native Method` are not files.
    if file.is_empty() || (!file.contains('/') && !file.contains('.')) {
        return None;
    }
    if is_java {
        let package = location.class.rsplit_once('.').map(|(package, _)| package);
        // One of several classes in different packages: `com.{other.Util, shop.Main}`.
        if package.is_some_and(|package| package.contains('{')) {
            return None;
        }
        let folder = package.map_or(String::new(), |package| package.replace('.', "/") + "/");
        return Some((format!("{folder}{file}"), true));
    }
    // The slashes after a scheme are no empty folders: `webpack:///src/cart.ts`.
    let path = if file.contains("://") {
        Some(file)
    } else {
        normal(&file)
    };
    Some((path?, false))
}

fn is_of_library(path: &str) -> bool {
    let path = format!("/{}", path.trim_start_matches('/'));
    LIBRARY_FOLDERS.iter().any(|folder| path.contains(folder))
}

/// Removes `.`, and `..` with the folder before it. Returns `None` if the path leads out of its root.
fn normal(path: &str) -> Option<String> {
    let mut segments: Vec<&str> = Vec::new();
    for (place, segment) in path.split('/').enumerate() {
        match segment {
            "." => {}
            "" if place > 0 => {}
            ".." => match segments.pop() {
                None | Some("") => return None,
                Some(_) => {}
            },
            segment => segments.push(segment),
        }
    }
    Some(segments.join("/"))
}

#[cfg(test)]
mod tests;
