//! Native symbol files, in the package `symbolic-testutils` and in its repository.

use unjank_symbols::{Format, LookupKind, inspect};

use super::{folder_of, lookup, named_folder, shown};

#[test]
fn native_files_name_functions_and_lines() {
    let named = named_folder();
    let folder = named
        .clone()
        .unwrap_or_else(|| folder_of("symbolic-testutils").join("fixtures"));
    let mut checked = Vec::new();
    for (file, format, offset, expected) in NATIVE {
        let path = folder.join(file);
        if named.is_none() && !path.exists() {
            continue;
        }
        let data = std::fs::read(path).unwrap();
        let found = inspect(&data).unwrap();
        assert_eq!(found[0].format, *format, "{file}");
        let lookup = lookup(&data, LookupKind::Native);
        let lines: Vec<String> = lookup.native(*offset).iter().map(shown).collect();
        assert_eq!(&lines, expected, "{file} {offset:#x}");
        checked.push(found[0].format);
    }
    for format in [Format::Elf, Format::MachO, Format::Pdb, Format::Breakpad] {
        assert!(checked.contains(&format), "{format:?} in {checked:?}");
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
