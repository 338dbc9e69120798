//! Labels in assembler code: symbols without a type and a size. Code without other symbols is known by them.

use std::borrow::Cow;

use gimli::{EndianSlice, Reader, RunTimeEndian};
use symbolic::debuginfo::Symbol;
use symbolic::debuginfo::dwarf::Dwarf;
use symbolic::debuginfo::elf::ElfObject;

/// The value of the fifth byte of an ELF file of 64 bits.
const OF_64_BITS: u8 = 2;
/// Types of symbols.
const NO_TYPE: u8 = 0;
const FUNCTION: u8 = 2;
/// Larger numbers of sections have a special meaning, as has 0.
const LAST_SECTION: u16 = 0xfeff;

/// A row of the table of symbols.
struct Row {
    name: u32,
    kind: u8,
    section: u16,
    address: u64,
    size: u64,
}

/// Returns the labels that are in no function, without sizes. They may be in any section.
pub(super) fn labels<'d>(elf: &ElfObject<'d>) -> Vec<Symbol<'d>> {
    let uncompressed = |name: &str| match elf.raw_section(name)?.data {
        Cow::Borrowed(data) => Some(data),
        Cow::Owned(_) => None,
    };
    let (Some(table), Some(names)) = (uncompressed("symtab"), uncompressed("strtab")) else {
        return Vec::new();
    };
    let is_64_bit = elf.data().get(4) == Some(&OF_64_BITS);
    let mut table = EndianSlice::new(table, elf.endianity());
    let mut labels = Vec::new();
    let mut functions = Vec::new();
    while let Ok(row) = read(&mut table, is_64_bit) {
        let Some(address) = row.address.checked_sub(elf.load_address()) else {
            continue;
        };
        if row.kind == FUNCTION {
            functions.push((address, address.saturating_add(row.size)));
        } else if let Some(name) = label(&row, names) {
            labels.push(Symbol {
                name: Some(Cow::Borrowed(name)),
                address,
                size: 0,
            });
        }
    }
    functions.sort_unstable();
    labels.retain(|label| !is_in_any(&functions, label.address));
    labels
}

fn read(table: &mut EndianSlice<'_, RunTimeEndian>, is_64_bit: bool) -> gimli::Result<Row> {
    let name = table.read_u32()?;
    let mut place: (u64, u64) = (0, 0);
    if !is_64_bit {
        place = (table.read_u32()?.into(), table.read_u32()?.into());
    }
    // The lower half of the byte is the type.
    let kind = table.read_u8()? & 0xf;
    table.read_u8()?;
    let section = table.read_u16()?;
    if is_64_bit {
        place = (table.read_u64()?, table.read_u64()?);
    }
    let (address, size) = place;
    Ok(Row {
        name,
        kind,
        section,
        address,
        size,
    })
}

/// Returns the name of a row if it is a label.
fn label<'d>(row: &Row, names: &'d [u8]) -> Option<&'d str> {
    let is_defined = (1..=LAST_SECTION).contains(&row.section);
    if row.kind != NO_TYPE || !is_defined {
        return None;
    }
    let name = names.get(usize::try_from(row.name).ok()?..)?;
    let end = name.iter().position(|byte| *byte == 0)?;
    let name = std::str::from_utf8(name.get(..end)?).ok()?;
    // Assemblers mark with `$` where code and data begin, and jump to labels with `.L`.
    (!name.is_empty() && !name.starts_with('$') && !name.starts_with(".L")).then_some(name)
}

/// Whether an address is in one of these ranges, which are sorted.
pub(super) fn is_in_any(ranges: &[(u64, u64)], address: u64) -> bool {
    let after = ranges.partition_point(|(from, _)| *from <= address);
    let before = after.checked_sub(1).and_then(|last| ranges.get(last));
    before.is_some_and(|(_, to)| address < *to)
}
