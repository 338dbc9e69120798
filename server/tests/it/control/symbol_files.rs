//! Symbol files and the builds that they belong to.

use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::{Connection, PgConnection};
use unjank_database::{Actor, Control, ControlError, NewSymbolFile, SymbolFile, SymbolFileFilter};
use unjank_symbols::{Contents, Format, Found};

use super::place::Place;
use super::{ANN, at, on_both_engines, with_project};
use crate::wait::until;

on_both_engines![
    a_removed_file_gives_way_to_one_file_for_each_build,
    a_file_is_added_with_its_content_only,
    only_a_content_without_a_file_may_be_deleted,
    a_file_that_is_used_after_a_sweep_found_it_is_kept,
    an_upload_of_a_known_file_keeps_it_and_what_it_needs_and_its_uploader,
    files_are_found_by_any_number_of_checksums,
];

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

/// Adds a file whose content is stored, some seconds after the start of the test.
async fn add(control: &Control, new: NewSymbolFile, seconds: i64) -> SymbolFile {
    let added = control.add_symbol_file("shop", new, &ANN, at(seconds), async { true });
    added.await.unwrap().unwrap()
}

/// Returns the names of all files, the latest first.
async fn names(control: &Control) -> Vec<String> {
    let files = control.symbol_files("shop", SymbolFileFilter::default(), 100);
    let files = files.await.unwrap();
    files.into_iter().map(|file| file.name).collect()
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
        let seconds = 1 + i64::try_from(second).unwrap();
        last = Some(add(control, new, seconds).await);
    }
    let before = control.symbol_revisions().await.unwrap();
    let (_, files, _) = before[0];
    let bundle = last.unwrap().id;
    let removed = control.remove_symbol_file("shop", bundle, &ANN, at(9));
    assert_eq!(removed.await.unwrap().as_deref(), Some("content of bundle"));
    let repaired = control.symbol_ids_since("shop", (files, files + 1), "", 10);
    assert_eq!(repaired.await.unwrap(), ["a", "b"]);
}

async fn a_file_is_added_with_its_content_only(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let new = file("bundle", &["a"]);
    let added = control.add_symbol_file("shop", new, &ANN, at(1), async { false });
    assert_eq!(added.await.unwrap(), None);
    assert!(names(control).await.is_empty());
    add(control, file("bundle", &["a"]), 2).await;
    assert_eq!(names(control).await, ["bundle"]);
}

async fn only_a_content_without_a_file_may_be_deleted(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let bundle = add(control, file("bundle", &["a"]), 1).await;
    let held = async |content: &str| control.hold_unused_content("shop", content).await.unwrap();
    assert!(held("content of bundle").await.is_none());
    assert!(held("content of another").await.is_some());
    let removed = control.remove_symbol_file("shop", bundle.id, &ANN, at(2));
    let content = removed.await.unwrap().unwrap();
    assert!(held(&content).await.is_some());
    // A server that has removed the file is about to delete its content, and another has added the file again.
    add(control, file("bundle", &["a"]), 3).await;
    assert!(held(&content).await.is_none());
}

async fn a_file_that_is_used_after_a_sweep_found_it_is_kept(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let used = add(control, file("used", &["a"]), 1).await.id;
    let needed = add(control, file("needed", &["b"]), 1).await.id;
    let uploaded = add(control, file("uploaded", &["c"]), 1).await.id;
    let unused = add(control, file("unused", &["d"]), 1).await.id;
    let before = at(10);
    let found = control.unused_symbol_files(before, 10).await.unwrap();
    assert_eq!(found.len(), 4);
    let touched = control.touch_symbol_file("shop", used, at(11));
    touched.await.unwrap();
    let marked = control.mark_symbol_file_needed("shop", needed, at(11));
    marked.await.unwrap();
    let again = add(control, file("uploaded", &["c"]), 11).await;
    assert_eq!(again.id, uploaded);
    let remove = async |id| {
        let file = (id, before);
        let removed = control.remove_unused_symbol_file("shop", file, &ANN, at(12));
        removed.await
    };
    assert_eq!(remove(used).await, Err(ControlError::NotFound));
    assert_eq!(remove(needed).await, Err(ControlError::NotFound));
    assert_eq!(remove(uploaded).await, Err(ControlError::NotFound));
    let content = remove(unused).await.unwrap();
    assert_eq!(content.as_deref(), Some("content of unused"));
    assert_eq!(remove(unused).await, Err(ControlError::NotFound));
    let marked = control.mark_symbol_file_needed("shop", unused, at(13));
    assert_eq!(marked.await, Err(ControlError::NotFound));
    let mut left = names(control).await;
    left.sort();
    assert_eq!(left, ["needed", "uploaded", "used"]);
    let builds = control.symbol_usage("shop").await.unwrap().builds;
    assert_eq!(builds, 3);
}

async fn an_upload_of_a_known_file_keeps_it_and_what_it_needs_and_its_uploader(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    add(control, file("shared", &["s"]), 1).await;
    let mut program = file("program", &["p"]);
    program.found[0].needs = Some("s".to_owned());
    let first = add(control, program.clone(), 1).await;
    let unused = async || control.unused_symbol_files(at(10), 10).await.unwrap().len();
    assert_eq!(unused().await, 2);
    let bob = Actor::cli("bob");
    let again = control.add_symbol_file("shop", program, &bob, at(11), async { true });
    again.await.unwrap();
    assert_eq!(unused().await, 0);
    let known = control.symbol_file("shop", &first.checksum).await.unwrap();
    assert_eq!(
        (known.id, known.uploaded_at, known.uploaded_by),
        (first.id, at(1), first.uploaded_by)
    );
    assert_eq!(known.needed_at, Some(at(11)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_not_added_while_another_server_deletes_its_content() {
    const WAITS: &str = "SELECT count(*) > 0 FROM pg_stat_activity \
         WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let place = Place::postgres().await;
    let other = place.another().await;
    with_project(&other, "shop").await;
    let held = place
        .control
        .hold_unused_content("shop", "content of bundle");
    let held = held.await.unwrap().unwrap();
    let is_deleted = AtomicBool::new(false);
    let is_stored = async { !is_deleted.load(Ordering::SeqCst) };
    let new = file("bundle", &["a"]);
    let added = other.add_symbol_file("shop", new, &ANN, at(1), is_stored);
    let mut connection = PgConnection::connect(&place.url).await.unwrap();
    let deleted = async {
        until("the other server waits", async || {
            let waits = sqlx::query_scalar::<_, bool>(WAITS);
            waits.fetch_one(&mut connection).await.unwrap()
        })
        .await;
        is_deleted.store(true, Ordering::SeqCst);
        drop(held);
    };
    let (added, ()) = tokio::join!(added, deleted);
    assert_eq!(added.unwrap(), None);
}

async fn files_are_found_by_any_number_of_checksums(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    with_project(control, "bank").await;
    let mut wanted: Vec<String> = (0..70).map(|n| format!("sha1 of another {n}")).collect();
    // The first, in the middle, and the last.
    for (index, name) in [(0, "a"), (33, "b"), (72, "c")] {
        let file = add(control, file(name, &[name]), 1).await;
        wanted.insert(index, file.checksum);
    }
    add(control, file("d", &["d"]), 1).await;
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let files = control.symbol_files_of("shop", &wanted).await.unwrap();
    let mut found: Vec<(&str, &str)> = (files.iter())
        .map(|file| (file.name.as_str(), file.builds[0].symbol_id.as_str()))
        .collect();
    found.sort_unstable();
    assert_eq!(found, [("a", "a"), ("b", "b"), ("c", "c")]);
    for (project, wanted) in [("bank", &wanted[..]), ("shop", &[])] {
        let files = control.symbol_files_of(project, wanted).await.unwrap();
        assert!(files.is_empty(), "{project}");
    }
}
