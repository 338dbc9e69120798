//! The files that the tests of `symbolic` read, through the whole path.
//!
//! They are too large to be part of the repository. `UNJANK_SYMBOL_FIXTURES` names the folder `symbolic-testutils/fixtures` of
//! <https://github.com/getsentry/symbolic>; without it, these tests do nothing.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "a test that does nothing says so")]

use std::path::PathBuf;

use unjank_symbols::{Format, Location, LookupFile, LookupKind, Origin, convert, inspect};

fn fixtures() -> Option<PathBuf> {
    let folder = std::env::var_os("UNJANK_SYMBOL_FIXTURES").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: UNJANK_SYMBOL_FIXTURES is not set");
    }
    folder
}

fn shown(location: &Location) -> String {
    let file = location.file.rsplit(['/', '\\']).next().unwrap();
    let inlined = match location.origin {
        Origin::Inlined => " (inlined)",
        Origin::Called | Origin::Ambiguous => "",
    };
    format!("{} {file}:{}{inlined}", location.function, location.line)
}

#[test]
fn native_files_name_functions_and_lines() {
    let Some(folder) = fixtures() else {
        return;
    };
    for (file, format, offset, expected) in NATIVE {
        let data = std::fs::read(folder.join(file)).unwrap();
        let found = inspect(&data).unwrap();
        assert_eq!(found[0].format, *format, "{file}");
        let mut converted = Vec::new();
        convert(&data, 0, &mut converted).unwrap();
        let lookup = LookupFile::from_bytes(&converted, LookupKind::Native).unwrap();
        let lines: Vec<String> = lookup.native(*offset).iter().map(shown).collect();
        assert_eq!(&lines, expected, "{file} {offset:#x}");
    }
}

/// File, format, offset, functions.
type Case = (&'static str, Format, u64, &'static [&'static str]);

const CRASH_MAC: &str = "macos/crash.dSYM/Contents/Resources/DWARF/crash";

const WRITE_MICRODUMP: &[&str] = &[
    "LogAppend microdump_writer.cc:227 (inlined)",
    "DumpModule microdump_writer.cc:481 (inlined)",
    "DumpMappings microdump_writer.cc:601 (inlined)",
    "Dump microdump_writer.cc:192 (inlined)",
    "google_breakpad::WriteMicrodump microdump_writer.cc:662",
];

const NATIVE: &[Case] = &[
    (
        CRASH_MAC,
        Format::MachO,
        0xdc15,
        &[
            "(anonymous namespace)::crash main.cpp:21 (inlined)",
            "(anonymous namespace)::start main.cpp:25 (inlined)",
            "main main.cpp:32",
        ],
    ),
    (
        CRASH_MAC,
        Format::MachO,
        0x2dd4,
        &[
            "std::__1::vector::operator[] vector:1510 (inlined)",
            "google_breakpad::GetFileTypeFromHeader dynamic_images.cc:323 (inlined)",
            "google_breakpad::DynamicImage::GetFileType dynamic_images.cc:329 (inlined)",
            "google_breakpad::DynamicImages::GetExecutableImageIndex dynamic_images.cc:542 (inlined)",
            "google_breakpad::DynamicImages::GetExecutableImage dynamic_images.cc:526",
        ],
    ),
    (
        "macos/overlapping_funcs.dSYM/Contents/Resources/DWARF/overlapping_funcs",
        Format::MachO,
        0x3f80,
        &["shell testachio.c:4"],
    ),
    ("linux/crash.debug", Format::Elf, 0x6000, WRITE_MICRODUMP),
    (
        "linux/crash.debug-zlib",
        Format::Elf,
        0x6000,
        WRITE_MICRODUMP,
    ),
    (
        "linux/crash.debug-zstd",
        Format::Elf,
        0x6000,
        WRITE_MICRODUMP,
    ),
    (
        "linux/crash",
        Format::Elf,
        0x6000,
        &["google_breakpad::WriteMicrodump :0"],
    ),
    (
        "linux/crash.sym",
        Format::Breakpad,
        0x7000,
        &["std::vector::_M_range_insert :0"],
    ),
    (
        "macos/crash.inlines.sym",
        Format::Breakpad,
        0xd7d,
        &[
            "google_breakpad::MinidumpFileWriter::Close minidump_file_writer.cc:140 (inlined)",
            "google_breakpad::MinidumpFileWriter::~MinidumpFileWriter minidump_file_writer.cc:101",
        ],
    ),
    (
        "macos/crash.sym",
        Format::Breakpad,
        0x1a2a,
        &["google_breakpad::MinidumpFileWriter::Copy minidump_file_writer.cc:312"],
    ),
    (
        "xul.sym",
        Format::Breakpad,
        0x00c6_dd98,
        &["std::_Func_impl_no_alloc::_Do_call :0"],
    ),
    (
        "libgallium_dri.sym",
        Format::Breakpad,
        0x0148_9adf,
        &["nouveau_drm_screen_create :0"],
    ),
    (
        "windows/crash.pdb",
        Format::Pdb,
        0x10a0,
        &[
            "google_breakpad::CrashGenerationClient::SignalCrashEventAndWait crash_generation_client.cc:351 (inlined)",
            "google_breakpad::CrashGenerationClient::RequestDump crash_generation_client.cc:337",
        ],
    ),
    ("windows/crash.pdb", Format::Pdb, 0x3756, &["malloc :0"]),
    (
        "windows/CrashWithException.pdb",
        Format::Pdb,
        0x1050,
        &["_vfprintf_l stdio.h:643 (inlined)", "printf stdio.h:958"],
    ),
    (
        "windows/hello-dwarf.exe",
        Format::Pe,
        0x1500,
        &["atexit crtexe.c:420"],
    ),
    (
        "wasm/simple.wasm",
        Format::Wasm,
        0x8b,
        &["simple::internal_func lib.rs:17"],
    ),
    (
        "wasm/emscripten/index.wasm",
        Format::Wasm,
        0x300,
        &["fflush fflush.c:15"],
    ),
];

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
    let Some(folder) = fixtures() else {
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
        let mut converted = Vec::new();
        convert(&data, 0, &mut converted).unwrap();
        let lookup = LookupFile::from_bytes(&converted, LookupKind::JavaScript).unwrap();
        let location = lookup.java_script(*line, *column, "minified").unwrap();
        assert_eq!(shown(&location), *expected);
    }
}

#[path = "source_maps/bundle.rs"]
mod bundle;
