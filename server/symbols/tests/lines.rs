//! A function has the line that the table of lines has, as `addr2line` finds it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "a test that does nothing says so")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use unjank_symbols::{LookupFile, LookupKind, convert};

const RUST: &str = include_str!("one_name/shop.rs");

const C: &str = "\
__attribute__((noinline)) static int help(int x) { return x * 3; }
__attribute__((noinline)) int round_up(int x) { return help(x) + 1; }
int main(int count, char **arguments) { return round_up(count); }
";

/// Each function has a line of its own.
const KEPT: &str = "\
__attribute__((noinline)) int pay(int x) { return x * 3; }
__attribute__((noinline)) int refund(int x) { return x * 5; }
int main(int count, char **arguments) { return pay(count) + refund(count); }
";

const ASSEMBLY: &str = "\
.text
.globl pay
.type pay, %function
pay:
  nop
  nop
.size pay, . - pay
.section .note.GNU-stack, \"\", %progbits
";

const LABEL: &str = "\
.text
.globl hot
hot:
  nop
  nop
.section .note.GNU-stack, \"\", %progbits
";

/// Compiles sources to a program. Returns whether the compiler could do it.
fn build(folder: &Path, compiler: &str, options: &[&str], sources: &[(&str, &str)]) -> bool {
    for (name, content) in sources {
        std::fs::write(folder.join(name), content).unwrap();
    }
    let names = sources.iter().map(|(name, _)| *name);
    let output = Command::new(compiler)
        .args(options)
        .args(["-o", "shop"])
        .args(names)
        .current_dir(folder)
        .output()
        .unwrap();
    if !output.status.success() {
        eprintln!(
            "skipped {options:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    output.status.success()
}

/// The first and the middle address of each function, and the addresses of labels, which have no size.
fn addresses(program: &Path) -> Vec<u64> {
    let output = Command::new("nm")
        .args(["-S"])
        .arg(program)
        .output()
        .unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    let function = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: &str| u64::from_str_radix(word, 16).ok();
        match words.as_slice() {
            [address, size, "t" | "T" | "W", ..] => {
                let address = number(address)?;
                Some(vec![address, address + number(size)? / 2])
            }
            [address, "t" | "T", ..] => Some(vec![number(address)?]),
            _ => None,
        }
    };
    listed.lines().filter_map(function).flatten().collect()
}

/// Checks a program against `addr2line`. Returns how many addresses have a line.
fn check(program: &Path) -> usize {
    let data = std::fs::read(program).unwrap();
    let mut converted = Vec::new();
    convert(&data, 0, &mut converted).unwrap();
    let lookup = LookupFile::from_bytes(&converted, LookupKind::Native).unwrap();
    let addresses = addresses(program);
    let output = Command::new("addr2line")
        .args(["-e"])
        .arg(program)
        .args(addresses.iter().map(|address| format!("{address:#x}")))
        .output()
        .unwrap();
    let expected = String::from_utf8(output.stdout).unwrap();
    let mut checked = 0;
    for (address, expected) in addresses.iter().zip(expected.lines()) {
        // A number that tells parts of a line apart may follow.
        let place = expected.split(' ').next().unwrap();
        let (file, line) = place.rsplit_once(':').unwrap();
        if file == "??" || line == "?" || line == "0" {
            continue;
        }
        let found = lookup.native(*address);
        let innermost = found
            .first()
            .unwrap_or_else(|| panic!("nothing at {address:#x}: {place}"));
        assert_eq!(
            innermost.line.to_string(),
            line,
            "{address:#x} {place} {found:?}"
        );
        let name = |file: &str| file.rsplit('/').next().unwrap().to_owned();
        // After link-time optimization, GCC gives the unit a name of its own.
        if name(file) != "<artificial>" {
            assert_eq!(
                name(&innermost.file),
                name(file),
                "{address:#x} {place} {found:?}"
            );
        }
        checked += 1;
    }
    checked
}

#[test]
fn functions_of_rust_without_an_entry_have_lines() {
    let source = [("shop.rs", RUST)];
    let builds: [&[&str]; 4] = [
        &["-O"],
        &["-Copt-level=1", "-Ccodegen-units=16"],
        &["-O", "-Clto=fat"],
        &[],
    ];
    let mut built = 0;
    for options in builds {
        let folder = tempfile::tempdir().unwrap();
        let always = [
            "-Cdebuginfo=line-tables-only",
            "--edition=2024",
            "-Clink-arg=-Wl,--build-id=sha1",
        ];
        if build(
            folder.path(),
            "rustc",
            &[&always, options].concat(),
            &source,
        ) {
            built += 1;
            assert!(check(&folder.path().join("shop")) > 20, "{options:?}");
        }
    }
    assert!(built > 0);
}

#[test]
fn functions_of_c_and_assembly_without_an_entry_have_lines() {
    let builds: [&[&str]; 4] = [
        &["-g1", "-O2"],
        &["-g1", "-O2", "-flto"],
        &["-g", "-O2"],
        &["-g", "-gdwarf-4"],
    ];
    for options in builds {
        let folder = tempfile::tempdir().unwrap();
        let sources = [("shop.c", C), ("hot.s", LABEL), ("pay.s", ASSEMBLY)];
        if build(
            folder.path(),
            "cc",
            &[options, &["-Wl,--build-id=sha1"]].concat(),
            &sources,
        ) {
            assert!(check(&folder.path().join("shop")) > 3, "{options:?}");
        }
    }
}

#[test]
fn functions_that_the_linker_left_out_have_no_addresses() {
    // It is larger than what is in front of the code.
    let dropped = format!(
        "void drop(volatile int *x) {{\n{}}}\n",
        "*x += 3;\n".repeat(3_000)
    );
    let source = [KEPT, &dropped].concat();
    for options in [["-g", "-O1"], ["-gdwarf-4", "-O1"], ["-g1", "-O1"]] {
        let folder = tempfile::tempdir().unwrap();
        let always = [
            "-ffunction-sections",
            "-Wl,--gc-sections",
            "-Wl,--build-id=sha1",
        ];
        let options = [options.as_slice(), &always].concat();
        if !build(
            folder.path(),
            "cc",
            &options,
            &[("shop.c", source.as_str())],
        ) {
            continue;
        }
        let program = folder.path().join("shop");
        let mut converted = Vec::new();
        convert(&std::fs::read(&program).unwrap(), 0, &mut converted).unwrap();
        let lookup = LookupFile::from_bytes(&converted, LookupKind::Native).unwrap();
        let found = addresses(&program).into_iter();
        let found = found.filter_map(|address| lookup.native(address).into_iter().next());
        let places: BTreeSet<(String, u32)> = found
            .filter(|found| found.file.ends_with("shop.c"))
            .map(|found| (found.function, found.line))
            .collect();
        let expected = [("main", 3), ("pay", 1), ("refund", 2)];
        let expected = expected.map(|(function, line)| (function.to_owned(), line));
        assert_eq!(places, BTreeSet::from(expected), "{options:?}");
    }
}
