//! Functions that the linker has left out of a program, as `--gc-sections` does.
//!
//! Their debug information stays in the file, with 0 or a small number as their address. If such a function is larger than what is in
//! front of the code, it seems to be where other functions are.

use std::ops::Range;

use gimli::{
    DebugLine, DebugLineOffset, EndianSlice, LineProgramHeader, Reader, ReaderOffset,
    RunTimeEndian, SectionId,
};
use goblin::container::Ctx;
use goblin::elf::{Elf, SectionHeader};
use symbolic::debuginfo::dwarf::Dwarf;

use super::labels::is_in_any;
use super::replaced_sections::Replaced;

type Bytes<'d> = EndianSlice<'d, RunTimeEndian>;

/// An address that consists of these bytes is no address of code.
const TOMBSTONE: u8 = 0xff;
/// Tables of lines before version 5 do not say how many bytes an address has. Each address has its own length, which counts.
const ADDRESS_BYTES: u8 = 8;

/// Where the code of a program is.
pub(super) struct Code {
    /// The addresses of the sections with code, from and to, in order. Empty if they are unknown.
    sections: Vec<(u64, u64)>,
}

impl Code {
    /// Takes each address for one of code.
    pub(super) fn anywhere() -> Self {
        Self {
            sections: Vec::new(),
        }
    }

    pub(super) fn of_elf(data: &[u8]) -> Self {
        Self {
            sections: executable_sections(data).unwrap_or_default(),
        }
    }

    pub(super) fn contains(&self, address: u64) -> bool {
        self.sections.is_empty() || is_in_any(&self.sections, address)
    }
}

fn executable_sections(data: &[u8]) -> Option<Vec<(u64, u64)>> {
    let header = Elf::parse_header(data).ok()?;
    let context = Ctx::new(header.container().ok()?, header.endianness().ok()?);
    let (offset, count) = (usize::try_from(header.e_shoff).ok()?, header.e_shnum.into());
    let sections = SectionHeader::parse(data, offset, count, context).ok()?;
    let code = sections
        .iter()
        .filter(|section| section.is_executable() && section.sh_size > 0);
    let mut ranges: Vec<(u64, u64)> = code
        .map(|section| {
            let end = section.sh_addr.saturating_add(section.sh_size);
            (section.sh_addr, end)
        })
        .collect();
    ranges.sort_unstable();
    Some(ranges)
}

/// Returns debug information in which the lines of functions that the linker has left out have no address.
pub(super) fn without_dropped_lines<'p, 'd, P: Dwarf<'d>>(
    debug: &'p P,
    code: &Code,
) -> Replaced<'p, P> {
    let name = SectionId::DebugLine.name().trim_start_matches('.');
    let table = debug.section(name).and_then(|section| {
        let table = EndianSlice::new(&section.data, debug.endianity());
        let dropped = dropped_addresses(table, code);
        if dropped.is_empty() {
            return None;
        }
        let mut table = section.data.into_owned();
        for place in dropped {
            if let Some(address) = table.get_mut(place) {
                address.fill(TOMBSTONE);
            }
        }
        Some((name, table))
    });
    Replaced {
        file: debug,
        sections: table.into_iter().collect(),
    }
}

/// Returns where the table of lines sets an address at which there is no code.
fn dropped_addresses(table: Bytes<'_>, code: &Code) -> Vec<Range<usize>> {
    let lines: DebugLine<Bytes<'_>> = DebugLine::from(table);
    let mut dropped = Vec::new();
    let mut at = 0;
    while at < table.len() {
        // After a damaged program, the beginning of the next one is unknown.
        let Ok(program) = lines.program(DebugLineOffset(at), ADDRESS_BYTES, None, None) else {
            break;
        };
        let header = program.header();
        let addresses = Addresses {
            input: header.raw_program_buf(),
            header,
        };
        let places = addresses.filter_map(|mut address| {
            let start = address.offset_from(table);
            let place = start..start + address.len();
            let bytes = u8::try_from(address.len()).ok()?;
            let address = address.read_address(bytes).ok()?;
            // A program may end with the address behind the last instruction.
            let is_code = code.contains(address) || code.contains(address.wrapping_sub(1));
            (!is_code).then_some(place)
        });
        dropped.extend(places);
        let head = usize::from(header.format().initial_length_size());
        at = at.saturating_add(head).saturating_add(header.unit_length());
    }
    dropped
}

/// Reads the addresses that the instructions of a program set. Ends at an instruction that is damaged.
struct Addresses<'h, 'd> {
    input: Bytes<'d>,
    header: &'h LineProgramHeader<Bytes<'d>>,
}

impl<'d> Iterator for Addresses<'_, 'd> {
    type Item = Bytes<'d>;

    fn next(&mut self) -> Option<Bytes<'d>> {
        while !self.input.is_empty() {
            if let Some(address) = self.instruction().ok()? {
                return Some(address);
            }
        }
        None
    }
}

impl<'d> Addresses<'_, 'd> {
    /// Reads an instruction. Returns the address that it sets, if it sets one.
    fn instruction(&mut self) -> gimli::Result<Option<Bytes<'d>>> {
        let opcode = self.input.read_u8()?;
        if opcode == 0 {
            let length = usize::from_u64(self.input.read_uleb128()?)?;
            let mut extended = self.input.split(length)?;
            let kind = gimli::DwLne(extended.read_u8()?);
            return Ok((kind == gimli::DW_LNE_set_address).then_some(extended));
        }
        if opcode >= self.header.opcode_base() {
            return Ok(None);
        }
        if gimli::DwLns(opcode) == gimli::DW_LNS_fixed_advance_pc {
            self.input.read_u16()?;
            return Ok(None);
        }
        let operands = self.header.standard_opcode_lengths().slice();
        let operands = operands.get(usize::from(opcode) - 1).copied();
        for _ in 0..operands.unwrap_or_default() {
            self.input.skip_leb128()?;
        }
        Ok(None)
    }
}
