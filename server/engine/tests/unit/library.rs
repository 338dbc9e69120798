//! Downloading, checking and unpacking the library, with archives that the tests create.

use std::os::unix::fs::PermissionsExt;
use std::sync::Mutex;

use flate2::write::GzEncoder;
use tempfile::TempDir;

use super::*;

/// Creates a tarball with these members.
fn tarball(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (name, content) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, *content).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

/// A folder with a fake npm that copies the tarball and counts its calls.
struct FakeNpm {
    folder: TempDir,
}

impl FakeNpm {
    fn new(tarball: &[u8], script: &str) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("package.tgz"), tarball).unwrap();
        let npm = folder.path().join("npm");
        let text = format!(
            "#!/bin/sh\necho fetched >> {0}/count\n{script}\n",
            folder.path().display()
        );
        std::fs::write(
            &npm,
            text.replace(
                "TARBALL",
                folder.path().join("package.tgz").to_str().unwrap(),
            ),
        )
        .unwrap();
        std::fs::set_permissions(&npm, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    /// Creates a fake npm that copies the tarball to its destination.
    fn with(tarball: &[u8]) -> Self {
        Self::new(tarball, "sleep 0.1; cp TARBALL \"$5/x.tgz\"")
    }

    fn fetch(&self, platform: Platform) -> anyhow::Result<PathBuf> {
        fetch_once(
            platform,
            &self.folder.path().join("cache"),
            &self.folder.path().join("npm"),
            &|_| {},
        )
    }

    fn count(&self) -> usize {
        std::fs::read_to_string(self.folder.path().join("count"))
            .unwrap_or_default()
            .lines()
            .count()
    }

    /// Returns the files in the cache.
    fn left(&self) -> Vec<String> {
        let folder = self.folder.path().join(format!("cache/{VERSION}-test"));
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn platform(tarball: &[u8]) -> Platform {
    let integrity = fetch::integrity_of(&mut &*tarball).unwrap();
    Platform {
        name: "test",
        integrity: Some(integrity.leak()),
    }
}

const GOOD: &[(&str, &[u8])] = &[
    ("package/package.json", b"{}"),
    ("package/libchdb.so", b"a library"),
];

#[test]
fn the_library_is_downloaded_once_and_then_found() {
    let packed = tarball(GOOD);
    let npm = FakeNpm::with(&packed);
    for _ in 0..2 {
        let path = npm.fetch(platform(&packed)).unwrap();
        assert_eq!(std::fs::read(path).unwrap(), b"a library");
    }
    assert_eq!(npm.count(), 1);
    assert_eq!(npm.left(), ["fetch.lock", "libchdb.so"]);
}

#[test]
fn concurrent_callers_download_once() {
    let packed = tarball(GOOD);
    let npm = FakeNpm::with(&packed);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| npm.fetch(platform(&packed)).unwrap());
        }
    });
    assert_eq!(npm.count(), 1);
}

#[test]
fn a_tampered_tarball_is_rejected_and_deleted() {
    let expected = platform(&tarball(GOOD));
    let npm = FakeNpm::with(&tarball(&[("package/libchdb.so", b"another library")]));
    let error = npm.fetch(expected).unwrap_err();
    assert!(
        error.to_string().contains("is not the expected one"),
        "{error}"
    );
    assert_eq!(npm.left(), ["fetch.lock"]);
}

#[test]
fn a_package_without_the_library_is_rejected() {
    let packed = tarball(&[("package/other.so", b"x"), ("libchdb.so", b"x")]);
    let error = FakeNpm::with(&packed).fetch(platform(&packed)).unwrap_err();
    assert!(error.to_string().contains("contains no library"), "{error}");
}

#[test]
fn the_error_of_npm_is_quoted() {
    let npm = FakeNpm::new(
        b"",
        "echo 'npm error code E404' >&2; echo 'npm error 404 Not Found' >&2; exit 1",
    );
    let error = npm.fetch(platform(b"")).unwrap_err().to_string();
    assert!(
        error.contains("npm error 404 Not Found") && !error.contains('\n'),
        "{error}"
    );
}

#[test]
fn a_missing_npm_is_explained_in_one_sentence() {
    let folder = TempDir::new().unwrap();
    let error = fetch_once(
        platform(b""),
        folder.path(),
        Path::new("no-such-npm"),
        &|message| panic!("{message}"),
    )
    .unwrap_err();
    assert!(error.to_string().contains("npm is needed once"), "{error}");
}

#[test]
fn a_given_path_is_used_or_rejected() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("lib.so");
    let error = locate_or_fetch(Some(&file), folder.path(), &|_| {}).unwrap_err();
    assert!(error.to_string().contains("is not a file"), "{error}");
    std::fs::write(&file, "x").unwrap();
    assert_eq!(
        locate_or_fetch(Some(&file), folder.path(), &|_| {}).unwrap(),
        file
    );
}

#[test]
fn progress_is_reported() {
    let packed = tarball(GOOD);
    let npm = FakeNpm::with(&packed);
    let messages = Mutex::new(Vec::new());
    let progress = |message: &str| messages.lock().unwrap().push(message.to_owned());
    fetch_once(
        platform(&packed),
        npm.folder.path(),
        &npm.folder.path().join("npm"),
        &progress,
    )
    .unwrap();
    assert!(
        messages
            .into_inner()
            .unwrap()
            .first()
            .unwrap()
            .contains("@chdb/lib-test")
    );
}
