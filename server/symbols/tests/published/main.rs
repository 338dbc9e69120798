//! Symbol files that others have published, through our path.
//!
//! The crates `proguard` and `symbolic-testutils` contain such files, so cargo downloads them. Others are too large for that:
//! `UNJANK_SYMBOL_FIXTURES` names the folder `symbolic-testutils/fixtures` of <https://github.com/getsentry/symbolic>. Without it, the
//! tests of those files do nothing.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "a test that does nothing says so")]

mod mappings;
mod native;
mod source_maps;

use std::path::PathBuf;
use std::process::Command;

use unjank_symbols::{Location, LookupFile, LookupKind, Origin, convert};

/// The folder into which cargo unpacked a package. Packages for other systems may not be downloaded.
fn folder_of(package: &str) -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--offline",
            "--filter-platform",
            "host-tuple",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let found = packages.iter().find(|one| one["name"] == package).unwrap();
    let manifest = PathBuf::from(found["manifest_path"].as_str().unwrap());
    manifest.parent().unwrap().to_owned()
}

/// The folder that `UNJANK_SYMBOL_FIXTURES` names.
fn named_folder() -> Option<PathBuf> {
    let folder = std::env::var_os("UNJANK_SYMBOL_FIXTURES").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("only the files of crates: UNJANK_SYMBOL_FIXTURES is not set");
    }
    folder
}

fn lookup(data: &[u8], kind: LookupKind) -> LookupFile {
    let mut converted = Vec::new();
    convert(data, 0, &mut converted).unwrap();
    LookupFile::from_bytes(&converted, kind).unwrap()
}

fn shown(location: &Location) -> String {
    let file = location.file.rsplit(['/', '\\']).next().unwrap();
    let inlined = match location.origin {
        Origin::Inlined => " (inlined)",
        Origin::Called | Origin::Ambiguous => "",
    };
    format!("{} {file}:{}{inlined}", location.function, location.line)
}
