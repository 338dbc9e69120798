//! Symbol files and the builds that they belong to.

use unjank_database::NewSymbolFile;
use unjank_symbols::{Contents, Format, Found};

use super::place::Place;
use super::{ANN, at, on_both_engines, with_project};

on_both_engines![a_removed_file_gives_way_to_one_file_for_each_build];

/// A file with functions of these builds.
fn file(name: &str, builds: &[&str]) -> NewSymbolFile {
    let found = |(index, id): (u32, &&str)| Found {
        index,
        format: Format::SourceMap,
        ids: vec![(*id).to_owned()],
        arch: String::new(),
        name: String::new(),
        contents: Contents {
            functions: true,
            lines: true,
        },
        is_id_computed: false,
        needs: None,
        warnings: Vec::new(),
    };
    NewSymbolFile {
        checksum: format!("sha1 of {name}"),
        content: format!("content of {name}"),
        name: name.to_owned(),
        bytes: 1,
        found: (0..).zip(builds).map(found).collect(),
    }
}

async fn a_removed_file_gives_way_to_one_file_for_each_build(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let mut last = None;
    for (second, new) in [
        file("first", &["a"]),
        file("second", &["b"]),
        file("other", &["c"]),
        file("bundle", &["a", "b"]),
    ]
    .into_iter()
    .enumerate()
    {
        let at = at(1 + i64::try_from(second).unwrap());
        last = Some(
            control
                .add_symbol_file("shop", new, &ANN, at)
                .await
                .unwrap(),
        );
    }
    let before = control.symbol_revisions().await.unwrap();
    let (_, files, _) = before[0];
    let bundle = last.unwrap().id;
    let removed = control.remove_symbol_file("shop", bundle, &ANN, at(9));
    assert_eq!(removed.await.unwrap().as_deref(), Some("content of bundle"));
    let repaired = control.symbol_ids_since("shop", (files, files + 1), "", 10);
    assert_eq!(repaired.await.unwrap(), ["a", "b"]);
}
