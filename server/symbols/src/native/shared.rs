//! Puts debug information back that `dwz` has moved to a file that several programs share.
//!
//! The sections of the shared file are appended to those of the program. References to the shared file then become references within
//! one file, which have the same size: only their form and their offset change.

use std::collections::BTreeMap;

use gimli::{
    DebugAbbrev, DebugInfo as Units, DwForm, EndianSlice, Format, RunTimeEndian, SectionId,
    UnitHeader,
};
use symbolic::debuginfo::dwarf::{Dwarf, DwarfSection};

use super::replaced_sections::Replaced;

type Bytes<'d> = EndianSlice<'d, RunTimeEndian>;

/// The sections that `dwz` moves parts of.
const SECTIONS: [SectionId; 5] = [
    SectionId::DebugInfo,
    SectionId::DebugAbbrev,
    SectionId::DebugStr,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
];

fn name(section: SectionId) -> &'static str {
    section.name().trim_start_matches('.')
}

/// The sizes of the program's sections, by which offsets into the shared file grow.
type Sizes = BTreeMap<&'static str, usize>;

/// Joins the debug information of a program and that of the file it shares.
pub(super) fn join<'p, 'd, P: Dwarf<'d>>(
    program: &'p P,
    shared: &impl Dwarf<'d>,
) -> Result<Replaced<'p, P>, gimli::Error> {
    let endian = program.endianity();
    let content = |file: Option<DwarfSection<'_>>| file.map(|section| section.data.into_owned());
    let mut own: BTreeMap<&'static str, Vec<u8>> = BTreeMap::new();
    let mut others: BTreeMap<&'static str, Vec<u8>> = BTreeMap::new();
    for section in SECTIONS.map(name) {
        own.insert(
            section,
            content(program.section(section)).unwrap_or_default(),
        );
        others.insert(
            section,
            content(shared.section(section)).unwrap_or_default(),
        );
    }
    let sizes: Sizes = own.iter().map(|(name, data)| (*name, data.len())).collect();
    let grow = |form, attribute| growth_of_own(form, attribute, &sizes);
    shift(&mut own, endian, &grow)?;
    let grow = |form, attribute| growth_of_shared(form, attribute, &sizes);
    shift(&mut others, endian, &grow)?;
    shift_abbreviations(&mut others, endian, &sizes)?;
    if let Some(abbreviations) = own.get_mut(name(SectionId::DebugAbbrev)) {
        rename_forms(abbreviations);
    }
    for (name, data) in others {
        own.entry(name).or_default().extend(data);
    }
    Ok(Replaced {
        file: program,
        sections: own,
    })
}

/// By how much a value of the program grows: references to the shared file become references to its place behind the program.
fn growth_of_own(form: DwForm, _attribute: gimli::DwAt, sizes: &Sizes) -> Option<usize> {
    let section = match form {
        gimli::DW_FORM_GNU_ref_alt | gimli::DW_FORM_ref_sup4 | gimli::DW_FORM_ref_sup8 => {
            SectionId::DebugInfo
        }
        gimli::DW_FORM_GNU_strp_alt | gimli::DW_FORM_strp_sup => SectionId::DebugStr,
        _ => return None,
    };
    sizes.get(name(section)).copied()
}

/// By how much a value of the shared file grows, because its sections are behind those of the program.
fn growth_of_shared(form: DwForm, attribute: gimli::DwAt, sizes: &Sizes) -> Option<usize> {
    let section = match form {
        gimli::DW_FORM_ref_addr => SectionId::DebugInfo,
        gimli::DW_FORM_strp => SectionId::DebugStr,
        gimli::DW_FORM_line_strp => SectionId::DebugLineStr,
        gimli::DW_FORM_sec_offset if attribute == gimli::DW_AT_stmt_list => SectionId::DebugLine,
        _ => return None,
    };
    sizes.get(name(section)).copied()
}

/// Adds to values of entries.
fn shift(
    sections: &mut BTreeMap<&'static str, Vec<u8>>,
    endian: RunTimeEndian,
    growth: &dyn Fn(DwForm, gimli::DwAt) -> Option<usize>,
) -> Result<(), gimli::Error> {
    let section = |section| sections.get(name(section)).map_or(&[][..], Vec::as_slice);
    let abbreviations = DebugAbbrev::new(section(SectionId::DebugAbbrev), endian);
    let info = section(SectionId::DebugInfo);
    let mut changed = info.to_vec();
    let mut units = Units::new(info, endian).units();
    while let Some(unit) = units.next()? {
        let growth = |form, attribute| Some((growth(form, attribute)?, word(&unit, form, endian)));
        shift_unit(&unit, &abbreviations, &mut changed, &growth)?;
    }
    sections.insert(name(SectionId::DebugInfo), changed);
    Ok(())
}

fn shift_unit(
    unit: &UnitHeader<Bytes<'_>>,
    abbreviations: &DebugAbbrev<Bytes<'_>>,
    changed: &mut [u8],
    growth: &dyn Fn(DwForm, gimli::DwAt) -> Option<(usize, Word)>,
) -> Result<(), gimli::Error> {
    let start = start_of(unit);
    let abbreviations = unit.abbreviations(abbreviations)?;
    let mut entries = unit.entries_raw(&abbreviations, None)?;
    while !entries.is_empty() {
        let Some(abbreviation) = entries.read_abbreviation()? else {
            continue;
        };
        for attribute in abbreviation.attributes() {
            let at = start.saturating_add(entries.next_offset().0);
            entries.read_attribute(*attribute)?;
            if let Some((growth, word)) = growth(attribute.form(), attribute.name()) {
                add(changed, at, word, growth);
            }
        }
    }
    Ok(())
}

/// Lets the units of the shared file find their abbreviations behind those of the program.
fn shift_abbreviations(
    shared: &mut BTreeMap<&'static str, Vec<u8>>,
    endian: RunTimeEndian,
    sizes: &Sizes,
) -> Result<(), gimli::Error> {
    let growth = sizes.get(name(SectionId::DebugAbbrev)).copied();
    let info = shared
        .get(name(SectionId::DebugInfo))
        .cloned()
        .unwrap_or_default();
    let mut changed = info.clone();
    let mut units = Units::new(&info, endian).units();
    while let Some(unit) = units.next()? {
        // The header: length (with a mark of 4 bytes if it has 8), version, from version 5 on the kind and the size of addresses.
        let (length, kinds) = match (unit.format(), unit.version()) {
            (Format::Dwarf32, version) => (4, if version >= 5 { 2 } else { 0 }),
            (Format::Dwarf64, version) => (12, if version >= 5 { 2 } else { 0 }),
        };
        let at = start_of(&unit).saturating_add(length + 2 + kinds);
        let word = word(&unit, gimli::DW_FORM_sec_offset, endian);
        add(&mut changed, at, word, growth.unwrap_or_default());
    }
    shared.insert(name(SectionId::DebugInfo), changed);
    Ok(())
}

fn start_of(unit: &UnitHeader<Bytes<'_>>) -> usize {
    unit.offset().0
}

/// How a number is written.
#[derive(Clone, Copy)]
struct Word {
    endian: RunTimeEndian,
    bytes: usize,
}

fn word(unit: &UnitHeader<Bytes<'_>>, form: DwForm, endian: RunTimeEndian) -> Word {
    let bytes = match form {
        gimli::DW_FORM_ref_sup4 => 4,
        gimli::DW_FORM_ref_sup8 => 8,
        _ => usize::from(unit.format().word_size()),
    };
    Word { endian, bytes }
}

/// Adds to a number in a section.
fn add(section: &mut [u8], at: usize, word: Word, growth: usize) {
    let end = at.saturating_add(word.bytes);
    let Some(bytes) = section.get_mut(at..end) else {
        return;
    };
    let is_big = word.endian == RunTimeEndian::Big;
    let mut number = [0_u8; 8];
    let places = || 0..word.bytes.min(8);
    let place = |digit: usize| {
        if is_big {
            word.bytes - 1 - digit
        } else {
            digit
        }
    };
    for digit in places() {
        number[digit] = bytes[place(digit)];
    }
    let number = u64::from_le_bytes(number)
        .wrapping_add(growth as u64)
        .to_le_bytes();
    for digit in places() {
        bytes[place(digit)] = number[digit];
    }
}

/// References to the shared file have forms of their own. Replaces them by those for references within a file, which are as long.
fn rename_forms(abbreviations: &mut [u8]) {
    let mut at = 0;
    while at < abbreviations.len() {
        // Code, tag, whether there are children; a zero ends a table.
        if number(abbreviations, &mut at) == 0 {
            continue;
        }
        number(abbreviations, &mut at);
        at += 1;
        loop {
            let attribute = number(abbreviations, &mut at);
            let start = at;
            let form = number(abbreviations, &mut at);
            if attribute == 0 && form == 0 {
                break;
            }
            let form = DwForm(u16::try_from(form).unwrap_or_default());
            if form == gimli::DW_FORM_implicit_const {
                number(abbreviations, &mut at);
            }
            let renamed = match form {
                gimli::DW_FORM_GNU_ref_alt | gimli::DW_FORM_ref_sup4 | gimli::DW_FORM_ref_sup8 => {
                    gimli::DW_FORM_ref_addr
                }
                gimli::DW_FORM_GNU_strp_alt | gimli::DW_FORM_strp_sup => gimli::DW_FORM_strp,
                _ => continue,
            };
            write_number(abbreviations.get_mut(start..at), renamed.0);
            if at >= abbreviations.len() {
                return;
            }
        }
    }
}

/// Reads a number in LEB128. Returns 0 at the end.
fn number(bytes: &[u8], at: &mut usize) -> u64 {
    let mut value = 0_u64;
    let mut shift = 0;
    while let Some(byte) = bytes.get(*at) {
        *at += 1;
        if shift < 64 {
            value |= u64::from(byte & 0x7f) << shift;
        }
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

/// Writes a number of less than 128 in LEB128, as long as the one that was there.
fn write_number(place: Option<&mut [u8]>, number: u16) {
    let Some((last, others)) = place.and_then(<[u8]>::split_last_mut) else {
        return;
    };
    *last = 0;
    others.fill(0x80);
    let low = u8::try_from(number).unwrap_or_default();
    match others.first_mut() {
        Some(first) => *first = 0x80 | low,
        None => *last = low,
    }
}
