//! Where an ELF file keeps its debug information: tools move parts of it into other files.

use std::borrow::Cow;

use gimli::{DebugAbbrev, EndianSlice, RunTimeEndian, SectionId, Unit, UnitHeader};
use symbolic::common::CodeId;
use symbolic::debuginfo::Object;
use symbolic::debuginfo::dwarf::Dwarf;

use crate::{Contents, Format, SymbolId};

/// The maximum size of a build id in bytes: a SHA-512.
const MAX_ID: usize = 64;
/// The number of letters of a file's name that a warning shows.
const MAX_NAME: usize = 255;
/// Units beyond this are not looked at. A program is mostly built with the same options throughout.
const MAX_UNITS: usize = 10_000;

/// What an ELF file has in other files.
#[derive(Default)]
pub(super) struct DebugInfo {
    /// The file is such a part itself: a `.dwo` or `.dwp` file.
    pub(super) is_package: bool,
    pub(super) shared: Option<Shared>,
    units: Units,
    /// The compiler of Rust has built a part of the file.
    is_of_rust: bool,
}

/// The compilation units of a file.
#[derive(Default)]
struct Units {
    count: usize,
    /// Units that have only their addresses in the file.
    elsewhere: usize,
    /// Whether there are others than these and those of the standard library.
    has_own: bool,
}

/// What `dwz` has moved to a file that several programs share.
pub(super) struct Shared {
    file: String,
    /// The build id of that file.
    pub(super) id: String,
}

type Bytes<'d> = EndianSlice<'d, RunTimeEndian>;

impl DebugInfo {
    pub(super) fn of(object: &Object<'_>) -> Self {
        match object {
            Object::Elf(elf) => Self::read(elf),
            _ => Self::default(),
        }
    }

    fn read<'d>(elf: &impl Dwarf<'d>) -> Self {
        let has = |section: SectionId| {
            let name = section.name().trim_start_matches('.');
            elf.raw_section(name).is_some()
        };
        let has_units = has(SectionId::DebugInfo);
        let is_package = !has_units && elf.raw_section("debug_info.dwo").is_some();
        let shared = elf.section("gnu_debugaltlink");
        Self {
            is_package,
            shared: shared.and_then(|section| Shared::read(&section.data)),
            units: count_units(elf).unwrap_or_default(),
            is_of_rust: is_of_rust(elf),
        }
    }

    /// Whether any of the debug information is that of the program. Otherwise, all of it is in other files, or that of the standard library.
    pub(super) fn is_of_program(&self) -> bool {
        self.units.count == 0 || self.units.has_own
    }

    /// Says what is missing, and what to do.
    pub(super) fn warnings(&self, format: Format, contents: Contents) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(Shared { file, id }) = &self.shared {
            warnings.push(format!(
                "`dwz` has moved a part of the debug information to {file} (build id {id}). Upload that file, too, or inlined functions are \
                 missing"
            ));
        }
        if self.units.elsewhere > 0 {
            warnings.push(format!(
                "the functions and lines of {} of {} compilation units are in .dwo or .dwp files, which are not read. Build with \
                 `split-debuginfo = \"off\"` (cargo) or without `-gsplit-dwarf` (C and C++)",
                self.units.elsewhere, self.units.count
            ));
        } else if !contents.lines {
            let missing = match format {
                Format::Breakpad => {
                    "the file has no lines. Run `dump_syms` on a program with debug information"
                }
                Format::Pe => "the file has no debug information. Upload its .pdb",
                Format::MachO => {
                    "the file has no debug information, so there are no lines, and no names of inlined functions. Upload its .dSYM"
                }
                _ if self.is_of_rust => {
                    "the file has no debug information of your code, so there are no lines, and no names of inlined or stripped functions. \
                     Build once with `debug = 1` and without `strip` in the profile of cargo, upload that program, and ship the copy that \
                     `strip -o` makes of it. With `strip` in the profile, the linker strips, and a build without it has another build id, \
                     so it does not match: upload the program from before `strip`, of the same build"
                }
                _ => {
                    "the file has no debug information, so there are no lines, and no names of inlined or stripped functions. Build \
                     with debug information (`-g` for C and C++), upload the file from before `strip`, and ship the copy that `strip` \
                     makes of it: a program that is linked again with other options, such as `-s`, has another build id"
                }
            };
            warnings.push(missing.to_owned());
        }
        warnings
    }
}

impl Shared {
    /// Reads the name of the file, a zero byte, and the build id.
    fn read(section: &[u8]) -> Option<Self> {
        let end = section.iter().position(|byte| *byte == 0)?;
        let (file, id) = section.split_at_checked(end)?;
        // A build id has 20 bytes. A made-up one could be as large as the file.
        let id = id.get(1..).filter(|id| id.len() <= MAX_ID)?;
        let id = SymbolId::parse(CodeId::from_binary(id).as_str())?;
        let file = String::from_utf8_lossy(file);
        Some(Self {
            file: file.chars().take(MAX_NAME).collect(),
            id: id.as_str().to_owned(),
        })
    }
}

/// Whether a compiler of Rust has left its version in the file.
fn is_of_rust<'d>(elf: &impl Dwarf<'d>) -> bool {
    let section = elf.section("comment");
    let names = section
        .iter()
        .flat_map(|section| section.data.split(|byte| *byte == 0));
    names.into_iter().any(|name| name.starts_with(b"rustc "))
}

/// The sections that are read to name functions and lines.
const READ: [SectionId; 11] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugLoc,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugTypes,
];

/// Returns the name of a section that is in an ELF file, but cannot be read.
pub(super) fn unreadable_section(object: &Object<'_>) -> Option<&'static str> {
    let Object::Elf(elf) = object else {
        return None;
    };
    let names = READ.map(|section| section.name().trim_start_matches('.'));
    names
        .into_iter()
        .find(|name| elf.raw_section(name).is_some() && elf.section(name).is_none())
}

/// The sections that tell where a unit was compiled.
const OF_UNITS: [SectionId; 7] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

fn count_units<'d>(elf: &impl Dwarf<'d>) -> Result<Units, gimli::Error> {
    let read = |section: SectionId| {
        let name = section.name().trim_start_matches('.');
        let wanted = OF_UNITS.contains(&section).then(|| elf.section(name));
        let content = wanted.flatten().map(|section| section.data);
        Ok::<Cow<'d, [u8]>, gimli::Error>(content.unwrap_or_default())
    };
    let sections = gimli::DwarfSections::load(read)?;
    let dwarf = sections.borrow(|section| EndianSlice::new(section, elf.endianity()));
    let mut counted = Units::default();
    let mut units = dwarf.units();
    while let Ok(Some(unit)) = units.next() {
        counted.count += 1;
        if is_skeleton(&unit, &dwarf.debug_abbrev).unwrap_or_default() {
            counted.elsewhere += 1;
        } else if !counted.has_own {
            counted.has_own = !dwarf.unit(unit).is_ok_and(|unit| is_of_library(&unit));
        }
        if counted.count == MAX_UNITS {
            break;
        }
    }
    Ok(counted)
}

/// Whether a unit is of the standard library of Rust, which is shipped with debug information.
fn is_of_library(unit: &Unit<Bytes<'_>>) -> bool {
    /// Where it and the packages in it were compiled.
    const FOLDERS: [&[u8]; 3] = [b"/rustc/", b"/rust/deps/", b"/cargo/registry/"];
    let folder = unit.comp_dir.map(|folder| folder.slice());
    folder.is_some_and(|folder| FOLDERS.iter().any(|known| folder.starts_with(known)))
}

/// Whether a unit refers to another file for its contents.
fn is_skeleton(
    unit: &UnitHeader<Bytes<'_>>,
    abbreviations: &DebugAbbrev<Bytes<'_>>,
) -> Option<bool> {
    let abbreviations = unit.abbreviations(abbreviations).ok()?;
    let mut entries = unit.entries(&abbreviations);
    let root = entries.next_dfs().ok()??;
    let names = [gimli::DW_AT_dwo_name, gimli::DW_AT_GNU_dwo_name];
    Some(names.into_iter().any(|name| root.attr(name).is_some()))
}
