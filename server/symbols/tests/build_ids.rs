//! The id of a build: the one that the tools of its platform print, whichever step of the build made the file.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

use unjank_symbols::{Found, inspect};

const SOURCE: &str = "fn main() { println!(\"{}\", pay(std::env::args().count())); }
#[inline(never)] fn pay(x: usize) -> usize { x * 3 }";

fn run(program: &str, arguments: &[&str], folder: &Path) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?} {output:?}"
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Builds the program `shop` in a folder.
fn build(folder: &Path, options: &[&str]) -> PathBuf {
    std::fs::write(folder.join("shop.rs"), SOURCE).unwrap();
    let always = [
        "-O",
        "--edition=2024",
        "-Clink-arg=-Wl,--build-id=sha1",
        "shop.rs",
    ];
    run("rustc", &[&always, options].concat(), folder);
    folder.join("shop")
}

fn found(program: &Path) -> Found {
    inspect(&std::fs::read(program).unwrap()).unwrap().remove(0)
}

/// The build id that `readelf` prints.
fn printed(program: &Path) -> String {
    let notes = run(
        "readelf",
        &["-n", program.to_str().unwrap()],
        Path::new("."),
    );
    let (_, id) = notes.split_once("Build ID: ").unwrap();
    id.lines().next().unwrap().trim().to_owned()
}

#[test]
fn the_id_of_an_elf_file_is_the_one_that_readelf_prints() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path(), &["-g"]);
    let ids = found(&program).ids;
    assert_eq!(ids[0], printed(&program));
    // Tools that write GUIDs swap the first bytes.
    let bytes: Vec<&str> = (0..16)
        .map(|byte| ids[0].get(2 * byte..2 * byte + 2).unwrap())
        .collect();
    let swapped = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let guid: String = swapped.map(|byte| bytes[byte]).concat();
    assert!(ids.contains(&guid), "{guid} {ids:?}");
}

#[test]
fn formats_without_a_build_id_have_their_debug_id_first() {
    let windows = "MODULE windows x86_64 492E2DD23CC306CA9C494EEF1533A3811 shop.pdb\nINFO CODE_ID 5AB380779000 shop.exe\nPUBLIC 1000 0 pay\n";
    let ids = &inspect(windows.as_bytes()).unwrap()[0].ids;
    assert!(
        ids[0].starts_with("492e2dd23cc306ca9c494eef1533a381"),
        "{ids:?}"
    );
    assert!(ids.contains(&"5ab380779000".to_owned()), "{ids:?}");
    let mac = "MODULE mac arm64 67E9247C814E392BA027DBDE6748FCBF0 Shop\nPUBLIC 1000 0 pay\n";
    let ids = &inspect(mac.as_bytes()).unwrap()[0].ids;
    assert_eq!(ids[0], "67e9247c814e392ba027dbde6748fcbf");
}

#[test]
fn a_program_that_the_linker_stripped_is_told_how_to_match() {
    let folder = tempfile::tempdir().unwrap();
    let whole = build(folder.path(), &["-g"]);
    let id = printed(&whole);
    let path = |name: &str| folder.path().join(name);
    std::fs::rename(&whole, path("whole")).unwrap();
    run("strip", &["-o", "copy", "whole"], folder.path());
    run(
        "objcopy",
        &["--only-keep-debug", "whole", "separate"],
        folder.path(),
    );
    for name in ["copy", "separate"] {
        assert_eq!(found(&path(name)).ids[0], id, "{name}");
    }
    for option in ["-Cstrip=symbols", "-Cstrip=debuginfo"] {
        let stripped = found(&build(folder.path(), &["-g", option]));
        assert_ne!(stripped.ids[0], id, "{option}");
        let advice = &stripped.warnings[0];
        for part in [
            "without `strip` in the profile",
            "`strip -o`",
            "another build id",
        ] {
            assert!(advice.contains(part), "{advice}");
        }
    }
}

#[test]
fn lines_of_the_standard_library_are_not_those_of_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let with_lines = found(&build(folder.path(), &["-Cdebuginfo=line-tables-only"]));
    assert!(with_lines.contents.lines, "{with_lines:?}");
    assert!(with_lines.warnings.is_empty(), "{with_lines:?}");
    // The standard library has debug information all the same.
    let without = found(&build(folder.path(), &["-Cdebuginfo=0", "-Cstrip=none"]));
    assert!(without.contents.functions && !without.contents.lines);
    let advice = &without.warnings[0];
    assert!(
        advice.contains("no debug information of your code"),
        "{advice}"
    );
}

#[test]
fn a_program_of_c_that_the_linker_stripped_is_told_how_to_match() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("shop.c"),
        "int main(void) { return 0; }\n",
    )
    .unwrap();
    for option in ["-s", "-Wl,--strip-debug"] {
        let arguments = ["-g", option, "-Wl,--build-id=sha1", "-o", "shop", "shop.c"];
        run("cc", &arguments, folder.path());
        let advice = found(&folder.path().join("shop")).warnings.remove(0);
        assert!(advice.contains("`-s`, has another build id"), "{advice}");
    }
}
