//! Native symbol files that the tools of the machine build: what is in them, and what they answer.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "a test that does nothing says so")]

use std::path::{Path, PathBuf};
use std::process::Command;

use unjank_symbols::{
    ConvertError, Found, Location, LookupFile, LookupKind, Origin, Unusable, convert, convert_with,
    inspect,
};

const SOURCE: &str = "\
static inline __attribute__((always_inline)) int round_up(int price) {
  volatile int rounded = price * 3;
  return rounded + 1;
}
__attribute__((noinline)) int pay(int price) {
  return round_up(price) + 2;
}
int main(int count, char **arguments) {
  return pay(count);
}
";

/// A folder with the program `shop`, built from [`SOURCE`].
struct Built {
    folder: tempfile::TempDir,
}

impl Built {
    fn with(options: &[&str]) -> Self {
        let built = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        std::fs::write(built.path("shop.c"), SOURCE).unwrap();
        let base = ["-O1", "-Wl,--build-id=sha1", "-o", "shop", "shop.c"];
        built.run("cc", &[options, &base].concat());
        built
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(program);
        let status = command
            .args(arguments)
            .current_dir(self.folder.path())
            .status();
        assert!(status.unwrap().success(), "{program} {arguments:?}");
    }

    fn inspect(&self, name: &str) -> Found {
        let mut found = inspect(&std::fs::read(self.path(name)).unwrap()).unwrap();
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    /// Returns the functions at the first instruction of a function.
    fn at(&self, name: &str, function: &str) -> Vec<String> {
        let lookup = lookup(&self.path(name));
        let offset = self.address(function);
        lookup.native(offset).iter().map(shown).collect()
    }

    fn address(&self, function: &str) -> u64 {
        let output = Command::new("nm").arg(self.path("shop")).output().unwrap();
        let listed = String::from_utf8(output.stdout).unwrap();
        let symbol = format!(" {function}");
        let line = listed.lines().find(|line| line.ends_with(&symbol)).unwrap();
        u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
    }
}

fn lookup(path: &Path) -> LookupFile {
    let mut converted = Vec::new();
    convert(&std::fs::read(path).unwrap(), 0, &mut converted).unwrap();
    LookupFile::from_bytes(&converted, LookupKind::Native).unwrap()
}

fn shown(location: &Location) -> String {
    let file = location.file.rsplit('/').next().unwrap();
    let inlined = match location.origin {
        Origin::Inlined => " (inlined)",
        Origin::Called | Origin::Ambiguous => "",
    };
    format!("{} {file}:{}{inlined}", location.function, location.line)
}

const PAY: [&str; 2] = ["round_up shop.c:2 (inlined)", "pay shop.c:6"];

#[test]
fn a_stripped_program_is_found_by_the_id_of_its_debug_file() {
    let shop = Built::with(&["-g"]);
    shop.run("objcopy", &["--only-keep-debug", "shop", "shop.debug"]);
    shop.run(
        "objcopy",
        &[
            "--strip-all",
            "--add-gnu-debuglink=shop.debug",
            "shop",
            "stripped",
        ],
    );
    let [stripped, debug] = ["stripped", "shop.debug"].map(|name| shop.inspect(name));
    assert_eq!(stripped.ids, debug.ids);
    assert!(!stripped.contents.lines && debug.contents.lines);
    assert!(!stripped.contents.functions && debug.contents.functions);
    assert!(!stripped.is_id_computed);
    assert!(
        stripped.warnings[0].contains("before `strip`"),
        "{stripped:?}"
    );
    assert!(debug.warnings.is_empty(), "{debug:?}");
    assert_eq!(shop.at("shop.debug", "pay"), PAY);
    assert!(shop.at("stripped", "pay").is_empty());
}

#[test]
fn compressed_debug_information_is_read() {
    let shop = Built::with(&["-g"]);
    for form in ["zlib", "zlib-gnu", "zstd"] {
        let option = format!("--compress-debug-sections={form}");
        let status = Command::new("objcopy")
            .args([&option, "shop", form])
            .current_dir(shop.folder.path())
            .status();
        if !status.unwrap().success() {
            eprintln!("skipped: objcopy cannot write {form}");
            continue;
        }
        assert!(shop.inspect(form).contents.lines, "{form}");
        assert_eq!(shop.at(form, "pay"), PAY, "{form}");
    }
}

/// Returns where the compressed sections of a 64-bit ELF file begin, and whether they have a header of their own.
fn compressed_sections(data: &[u8]) -> Vec<(usize, bool)> {
    const COMPRESSED: u64 = 0x800;
    let number = |at: usize, bytes: usize| {
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(&data[at..at + bytes]);
        u64::from_le_bytes(number)
    };
    let place = |at: usize, bytes: usize| usize::try_from(number(at, bytes)).unwrap();
    let (first, size, count) = (place(0x28, 8), place(0x3a, 2), place(0x3c, 2));
    let sections = (0..count).map(|section| first + section * size);
    let found = sections.filter_map(|section| {
        let at = place(section + 24, 8);
        let has_header = number(section + 8, 8) & COMPRESSED != 0;
        (has_header || data[at..].starts_with(b"ZLIB")).then_some((at, has_header))
    });
    found.collect()
}

/// Whether a file is refused. Otherwise, the damage is in a section that nobody reads.
fn is_refused_as_damaged(data: &[u8]) -> bool {
    match inspect(data) {
        Err(refused) => {
            let refused = refused.to_string();
            assert!(refused.contains("cannot be decompressed"), "{refused}");
            true
        }
        Ok(_) => {
            convert(data, 0, &mut Vec::new()).unwrap();
            false
        }
    }
}

#[test]
fn compressed_sections_that_declare_absurd_sizes_are_refused() {
    let shop = Built::with(&["-g"]);
    let mut tried = 0;
    for form in ["zlib", "zlib-gnu", "zstd"] {
        let option = format!("--compress-debug-sections={form}");
        let status = Command::new("objcopy")
            .args([&option, "shop", form])
            .current_dir(shop.folder.path())
            .status();
        if !status.unwrap().success() {
            eprintln!("skipped: objcopy cannot write {form}");
            continue;
        }
        let data = std::fs::read(shop.path(form)).unwrap();
        for (at, has_header) in compressed_sections(&data) {
            for size in [u64::MAX >> 1, 1 << 40, 1 << 33] {
                let mut damaged = data.clone();
                let (at, size) = match has_header {
                    true => (at + 8, size.to_le_bytes()),
                    false => (at + 4, size.to_be_bytes()),
                };
                damaged[at..at + 8].copy_from_slice(&size);
                tried += usize::from(is_refused_as_damaged(&damaged));
            }
        }
    }
    assert!(tried >= 9, "{tried}");
}

#[test]
fn compressed_sections_with_damaged_content_are_refused() {
    let shop = Built::with(&["-g"]);
    let option = "--compress-debug-sections=zlib";
    shop.run("objcopy", &[option, "shop", "zlib"]);
    let data = std::fs::read(shop.path("zlib")).unwrap();
    let mut refused = 0;
    for (at, _) in compressed_sections(&data) {
        let mut damaged = data.clone();
        damaged[at + 24..at + 30].fill(0xff);
        refused += usize::from(is_refused_as_damaged(&damaged));
    }
    assert!(refused > 0);
}

#[test]
fn a_program_without_debug_information_has_functions_only() {
    let shop = Built::with(&[]);
    let found = shop.inspect("shop");
    assert!(found.contents.functions && !found.contents.lines);
    assert!(
        found.warnings[0].contains("no debug information"),
        "{found:?}"
    );
    assert_eq!(shop.at("shop", "pay"), ["pay :0"]);
}

#[test]
fn a_call_without_a_place_has_no_file() {
    // Version 2 of DWARF does not tell where an inlined function is called.
    let shop = Built::with(&["-gdwarf-2", "-gstrict-dwarf"]);
    let called = shop.at("shop", "pay");
    assert_eq!(called, ["round_up shop.c:2 (inlined)", "pay :0"]);
}

#[test]
fn split_debug_information_is_said_to_be_elsewhere() {
    let shop = Built::with(&["-g", "-gsplit-dwarf"]);
    let found = shop.inspect("shop");
    assert!(!found.contents.lines, "{found:?}");
    assert!(
        found.warnings[0].contains("1 of 1 compilation units"),
        "{found:?}"
    );
    assert_eq!(shop.at("shop", "pay"), ["pay :0"]);
    let mut names = std::fs::read_dir(shop.folder.path()).unwrap();
    let part = names.find_map(|file| {
        let path = file.unwrap().path();
        (path.extension()? == "dwo").then_some(path)
    });
    let refused = inspect(&std::fs::read(part.unwrap()).unwrap());
    assert!(matches!(refused, Err(Unusable::Package)), "{refused:?}");
}

#[test]
fn debug_information_that_dwz_moved_is_named() {
    let program = include_bytes!("dwz/shop").as_slice();
    let shared = include_bytes!("dwz/common.debug").as_slice();
    let other = include_bytes!("dwz/till").as_slice();
    let [found, common] = [program, shared].map(|file| inspect(file).unwrap().remove(0));
    assert!(common.ids.contains(&found.needs.unwrap()), "{common:?}");
    assert!(found.warnings[0].contains("common.debug"));
    let at = |converted: &[u8]| {
        let lookup = LookupFile::from_bytes(converted, LookupKind::Native).unwrap();
        let located = lookup.native(0x10c);
        located.iter().map(shown).collect::<Vec<_>>()
    };
    // The name of the inlined function is in the shared file.
    let mut converted = Vec::new();
    convert(program, 0, &mut converted).unwrap();
    assert_eq!(at(&converted), ["pay shop.c:6"]);
    let mut converted = Vec::new();
    convert_with(program, 0, shared, &mut converted).unwrap();
    assert_eq!(at(&converted), PAY);
    let refused = convert_with(program, 0, other, &mut Vec::new());
    assert!(
        matches!(refused, Err(ConvertError::OtherShared(_))),
        "{refused:?}"
    );
}

#[test]
fn a_program_without_a_build_id_is_refused() {
    let shop = Built::with(&["-g"]);
    shop.run(
        "objcopy",
        &[
            "--remove-section=.note.gnu.build-id",
            "--only-keep-debug",
            "shop",
            "nameless",
        ],
    );
    shop.run(
        "objcopy",
        &["--only-section=.debug_*", "nameless", "nameless"],
    );
    let refused = inspect(&std::fs::read(shop.path("nameless")).unwrap());
    assert!(matches!(refused, Err(Unusable::NoId(_))), "{refused:?}");
}

#[test]
fn an_id_that_the_linker_did_not_write_is_marked() {
    let shop = Built::with(&["-g"]);
    let remove = ["--remove-section=.note.gnu.build-id", "shop", "nameless"];
    shop.run("objcopy", &remove);
    assert!(shop.inspect("nameless").is_id_computed);
}

#[test]
fn files_that_end_early_are_refused_or_read_without_a_panic() {
    let shop = Built::with(&["-g"]);
    let data = std::fs::read(shop.path("shop")).unwrap();
    let mut refused = 0;
    for length in (0..data.len()).step_by(97) {
        let start = &data[..length];
        match inspect(start) {
            Err(_) => refused += 1,
            Ok(_) => drop(convert(start, 0, &mut Vec::new())),
        }
    }
    assert!(refused > 0);
}

#[test]
fn damaged_files_are_refused_or_read_without_a_panic() {
    let shop = Built::with(&["-g"]);
    let data = std::fs::read(shop.path("shop")).unwrap();
    for place in (0..data.len() - 8).step_by(61) {
        let mut damaged = data.clone();
        // Absurd sizes and offsets.
        damaged[place..place + 8].fill(0xff);
        if inspect(&damaged).is_ok() {
            drop(convert(&damaged, 0, &mut Vec::new()));
        }
    }
}

#[test]
fn instances_of_a_function_of_rust_have_one_name() {
    let folder = tempfile::tempdir().unwrap();
    let source = "\
pub struct Cart<T>(Vec<T>);
impl<T: std::fmt::Debug> Cart<T> {
    #[inline(never)]
    pub fn pay(&self) -> usize { std::hint::black_box(&self.0).len() }
}
fn main() {
    println!(\"{} {}\", Cart(vec![1_u8]).pay(), Cart(vec![\"a\"]).pay());
}
";
    std::fs::write(folder.path().join("shop.rs"), source).unwrap();
    let options = [
        "-g",
        "-O",
        "--edition=2024",
        "-Clink-arg=-Wl,--build-id=sha1",
        "shop.rs",
    ];
    let status = Command::new("rustc")
        .args(options)
        .current_dir(folder.path())
        .status();
    assert!(status.unwrap().success());
    let program = folder.path().join("shop");
    let output = Command::new("nm").arg(&program).output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    let lookup = lookup(&program);
    let mut found = 0;
    for symbol in listed.lines().filter(|line| line.contains("Cart")) {
        let offset = u64::from_str_radix(symbol.split(' ').next().unwrap(), 16).unwrap();
        let locations = lookup.native(offset);
        let last = locations.last().unwrap();
        if last.function.ends_with("pay") {
            assert_eq!(shown(last), "shop::Cart::pay shop.rs:4");
            found += 1;
        }
    }
    assert_eq!(found, 2, "{listed}");
}

#[test]
fn a_breakpad_file_names_inlined_functions() {
    let file = "\
MODULE Linux x86_64 492E2DD23CC306CA9C494EEF1533A3810 shop
INFO CODE_ID D22D2E49C33CCA069C494EEF1533A381F1C3BCC0
FILE 0 src/cart.cc
FILE 1 src/price.cc
INLINE_ORIGIN 0 shop::Price::round(int)
FUNC 1000 20 0 shop::Cart::pay<int>(int)
INLINE 0 12 0 0 1008 8
1000 8 10 0
1008 8 30 1
1010 10 13 0
PUBLIC 2000 0 refund
";
    let found = inspect(file.as_bytes()).unwrap();
    assert!(found[0].contents.lines && found[0].warnings.is_empty());
    assert_eq!(found[0].ids[0], "d22d2e49c33cca069c494eef1533a381f1c3bcc0");
    let mut converted = Vec::new();
    convert(file.as_bytes(), 0, &mut converted).unwrap();
    let lookup = LookupFile::from_bytes(&converted, LookupKind::Native).unwrap();
    let at = |offset| -> Vec<String> { lookup.native(offset).iter().map(shown).collect() };
    assert_eq!(
        at(0x100c),
        [
            "shop::Price::round price.cc:30 (inlined)",
            "shop::Cart::pay cart.cc:12"
        ]
    );
    assert_eq!(at(0x1014), ["shop::Cart::pay cart.cc:13"]);
    assert_eq!(at(0x2004), ["refund :0"]);
    assert!(at(0x500).is_empty());
}

/// A module of WebAssembly with one function, its name, and a build id.
fn web_assembly() -> Vec<u8> {
    let custom = |name: &str, content: &[u8]| {
        let length = u8::try_from(name.len()).unwrap();
        let body = [&[length], name.as_bytes(), content].concat();
        [&[0, u8::try_from(body.len()).unwrap()], body.as_slice()].concat()
    };
    let id: Vec<u8> = [16].into_iter().chain(1..=16).collect();
    // Functions: one name, of function 0, with three letters.
    let names = [&[1, 6, 1, 0, 3][..], b"pay"].concat();
    [
        b"\0asm\x01\0\0\0".to_vec(),
        // Types, functions, code: one function that returns.
        vec![1, 4, 1, 0x60, 0, 0],
        vec![3, 2, 1, 0],
        vec![10, 4, 1, 2, 0, 0x0b],
        custom("name", &names),
        custom("build_id", &id),
    ]
    .concat()
}

#[test]
fn web_assembly_has_names() {
    let module = web_assembly();
    let found = inspect(&module).unwrap();
    assert!(
        found[0]
            .ids
            .contains(&"0102030405060708090a0b0c0d0e0f10".to_owned()),
        "{found:?}"
    );
    assert!(found[0].contents.functions && !found[0].contents.lines);
    let mut converted = Vec::new();
    convert(&module, 0, &mut converted).unwrap();
    let lookup = LookupFile::from_bytes(&converted, LookupKind::Native).unwrap();
    // Offsets are those in the file.
    let body = module
        .windows(4)
        .position(|bytes| bytes == [1, 2, 0, 0x0b])
        .unwrap();
    let located = lookup.native(body as u64 + 2);
    assert_eq!(located.first().map(shown).as_deref(), Some("pay :0"));
}
