//! Source maps, in the repository of `symbolic`.

use unjank_symbols::LookupKind;

use super::{lookup, named_folder, shown};

#[path = "../source_maps/bundle.rs"]
mod bundle;

/// Script (empty for Hermes), source map, line and column from 1, location.
const SOURCE_MAPS: &[(&str, &str, u32, u32, &str)] = &[
    (
        "inlining/module.js",
        "inlining/module.js.map",
        1,
        63,
        "buttonCallback app.js:3",
    ),
    (
        "inlining/module.js",
        "inlining/module.js.map",
        1,
        47,
        "bar bar.js:4",
    ),
    (
        "inlining/module.js",
        "inlining/module.js.map",
        1,
        34,
        "minified foo.js:2",
    ),
    (
        "simple/minified.js",
        "simple/minified.js.map",
        1,
        11,
        "abcd original.js:2",
    ),
    (
        "preact.module.js",
        "preact.module.js.map",
        1,
        133,
        "assign util.js:12",
    ),
    (
        "preact.module.js",
        "preact.module.js.map",
        1,
        482,
        "createElement create-element.js:40",
    ),
    (
        "preact.module.js",
        "preact.module.js.map",
        1,
        50,
        "minified constants.js:3",
    ),
    (
        "",
        "hermes-metro/react-native-hermes.map",
        1,
        11_940,
        "foo module.js:2",
    ),
    (
        "",
        "hermes-metro/react-native-hermes.map",
        1,
        11_858,
        "<global> input.js:3",
    ),
];

#[test]
fn source_maps_name_functions_and_lines() {
    let Some(folder) = named_folder() else {
        return;
    };
    let folder = folder.join("sourcemapcache");
    for (script, map, line, column, expected) in SOURCE_MAPS {
        let map = std::fs::read_to_string(folder.join(map)).unwrap();
        let script = match *script {
            "" => String::new(),
            script => std::fs::read_to_string(folder.join(script)).unwrap(),
        };
        let data = bundle::of(&[("a.js", &script, &map)]);
        let lookup = lookup(&data, LookupKind::JavaScript);
        let location = lookup.java_script(*line, *column, "minified").unwrap();
        assert_eq!(shown(&location), *expected);
    }
}
