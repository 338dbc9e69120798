//! Which ClickHouse is located, with files that the tests create.

use super::*;

fn program(folder: &Path) -> PathBuf {
    let path = folder.join("clickhouse");
    std::fs::write(&path, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn found(
    folder: &Path,
    binary: Option<&Path>,
    library: Option<&Path>,
) -> Result<ClickHouse, String> {
    let search = Search {
        binary,
        library,
        cache_dir: folder,
        path: Some(folder.as_os_str()),
    };
    locate(search, &|_| {}).map_err(|error| format!("{error:#}"))
}

#[test]
fn a_given_program_takes_precedence_over_the_library() {
    let folder = tempfile::tempdir().unwrap();
    let path = program(folder.path());
    let library = folder.path().join("libchdb.so");
    std::fs::write(&library, "").unwrap();
    let found = |binary| found(folder.path(), binary, Some(&library));
    assert_eq!(found(Some(&path)), Ok(ClickHouse::Program(path.clone())));
    assert_eq!(found(None), Ok(ClickHouse::Library(library.clone())));
    let error = found(Some(&library)).unwrap_err();
    assert!(error.contains("is not a program"), "{error}");
}

#[test]
fn a_given_library_that_is_missing_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path());
    let missing = folder.path().join("missing.so");
    let error = found(folder.path(), None, Some(&missing)).unwrap_err();
    assert!(error.contains("missing.so is not a file"), "{error}");
}

#[test]
fn without_a_library_the_program_of_the_system_is_used() {
    let folder = tempfile::tempdir().unwrap();
    // A file in place of the cache folder, so that nothing can be downloaded.
    let cache = folder.path().join("cache");
    std::fs::write(&cache, "").unwrap();
    let search = |path| Search {
        binary: None,
        library: None,
        cache_dir: &cache,
        path,
    };
    let error = locate(search(Some(folder.path().as_os_str())), &|_| {}).unwrap_err();
    let error = format!("{error:#}");
    assert!(
        error.contains("install it so that `clickhouse` is on the PATH"),
        "{error}"
    );
    let path = program(folder.path());
    let found = locate(search(Some(folder.path().as_os_str())), &|_| {}).unwrap();
    assert_eq!(found, ClickHouse::Program(path));
}
