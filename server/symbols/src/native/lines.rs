//! Lines of functions that only the table of lines has.
//!
//! With few debug information, compilers write entries for functions that others were inlined into, and no entries for the rest. The
//! table of symbols has the names of the rest, and the table of lines has their lines.

use std::borrow::Cow;
use std::collections::BTreeMap;

use gimli::{EndianSlice, RunTimeEndian, SectionId, Unit};
use symbolic::common::{Language, Name, NameMangling};
use symbolic::debuginfo::dwarf::Dwarf;
use symbolic::debuginfo::{FileInfo, Function, LineInfo, Symbol};

use super::labels::is_in_any;

type Bytes<'d> = EndianSlice<'d, RunTimeEndian>;

/// Finds the lines of the functions without an entry.
#[derive(Default)]
pub(super) struct Lines {
    /// The addresses of the functions with an entry, from and to.
    known: Vec<(u64, u64)>,
}

impl Lines {
    /// Adds a function with an entry.
    pub(super) fn know(&mut self, function: &Function<'_>) {
        self.known.push((function.address, function.end_address()));
    }

    /// Calls back with each function without an entry that has lines. Of two symbols at one address, the last one names it.
    pub(super) fn find<'w, 's: 'w>(
        mut self,
        file: &impl Dwarf<'s>,
        symbols: impl Iterator<Item = &'w Symbol<'s>>,
        load_address: u64,
        mut found: impl FnMut(&Function<'_>),
    ) {
        self.known.sort_unstable();
        let is_wanted =
            |symbol: &Symbol<'s>| symbol.name.is_some() && !is_in_any(&self.known, symbol.address);
        let symbols: BTreeMap<u64, &'w Symbol<'s>> = symbols
            .filter(|symbol| is_wanted(symbol))
            .map(|symbol| (symbol.address, symbol))
            .collect();
        if symbols.is_empty() {
            return;
        }
        let wanted = Wanted {
            symbols,
            known: &self.known,
        };
        let sections = |section: SectionId| file.section(section.name().trim_start_matches('.'));
        let sections = gimli::DwarfSections::load(|section| {
            Ok::<_, gimli::Error>(sections(section).map_or(Cow::default(), |section| section.data))
        });
        let Ok(sections) = sections else {
            return;
        };
        let dwarf = sections.borrow(|section| EndianSlice::new(section, file.endianity()));
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            // Lines of a damaged unit are missing; those of others are right all the same.
            let Ok(unit) = dwarf.unit(header) else {
                continue;
            };
            // The inlined functions of such a unit are in another file, so its lines would be taken for those of the callers.
            if unit.dwo_name().is_ok_and(|name| name.is_some()) {
                continue;
            }
            let folder = unit.comp_dir.map(|folder| folder.slice());
            let lines = lines_of(&dwarf, &unit, &wanted, load_address);
            let lines = lines.unwrap_or_default().into_iter();
            let functions = lines.filter_map(|(address, lines)| {
                let symbol = wanted.symbols.get(&address)?;
                Some(function(symbol, folder.unwrap_or_default(), lines))
            });
            functions.for_each(|function| found(&function));
        }
    }
}

/// The symbols of the functions whose lines are looked for.
struct Wanted<'w, 's> {
    symbols: BTreeMap<u64, &'w Symbol<'s>>,
    /// The addresses of all other functions, from and to.
    known: &'w [(u64, u64)],
}

impl<'w, 's> Wanted<'w, 's> {
    fn at(&self, address: u64) -> Option<&'w Symbol<'s>> {
        let (_, symbol) = self.symbols.range(..=address).next_back()?;
        let is_inside = match symbol.size {
            // A symbol without a size is valid until another function begins.
            0 => !is_in_any(self.known, address),
            size => address < symbol.address.saturating_add(size),
        };
        is_inside.then_some(*symbol)
    }
}

fn function<'l>(
    symbol: &'l Symbol<'_>,
    folder: &'l [u8],
    lines: Vec<LineInfo<'l>>,
) -> Function<'l> {
    let name = symbol.name.as_deref().unwrap_or_default();
    let size = match symbol.size {
        0 => {
            let ends = lines
                .iter()
                .map(|line| line.address.saturating_add(line.size.unwrap_or_default()));
            ends.max()
                .unwrap_or_default()
                .saturating_sub(symbol.address)
        }
        size => size,
    };
    Function {
        address: symbol.address,
        size,
        name: Name::new(name, NameMangling::Unknown, Language::Unknown),
        compilation_dir: folder,
        lines,
        inlinees: Vec::new(),
        inline: false,
    }
}

/// A row of the table of lines: its address, and its place in the source.
type Row<'d> = (u64, FileInfo<'d>, u64);

/// Returns the lines of a unit that are of the functions that are looked for, by the address of the function.
fn lines_of<'d>(
    dwarf: &gimli::Dwarf<Bytes<'d>>,
    unit: &Unit<Bytes<'d>>,
    wanted: &Wanted<'_, '_>,
    load_address: u64,
) -> Result<BTreeMap<u64, Vec<LineInfo<'d>>>, gimli::Error> {
    let mut lines: BTreeMap<u64, Vec<LineInfo<'d>>> = BTreeMap::new();
    let Some(program) = unit.line_program.clone() else {
        return Ok(lines);
    };
    let mut rows = program.rows();
    let mut last: Option<Row<'d>> = None;
    while let Some((header, row)) = rows.next_row()? {
        let address = row.address().wrapping_sub(load_address);
        if let Some((from, file, line)) = last.take()
            && let Some(symbol) = wanted.at(from)
        {
            let size = address.checked_sub(from).filter(|size| *size > 0);
            let lines = lines.entry(symbol.address).or_default();
            lines.extend(size.map(|size| LineInfo {
                address: from,
                size: Some(size),
                file,
                line,
            }));
        }
        if row.end_sequence() || wanted.at(address).is_none() {
            continue;
        }
        let file = row.file(header).map(|file| {
            let text = |text| Some(Cow::Borrowed(dwarf.attr_string(unit, text).ok()?.slice()));
            let folder = file.directory(header).and_then(text);
            FileInfo::new(
                folder.unwrap_or_default(),
                text(file.path_name()).unwrap_or_default(),
            )
        });
        let line = row.line().map_or(0, std::num::NonZero::get);
        last = Some((address, file.unwrap_or_default(), line));
    }
    for lines in lines.values_mut() {
        lines.sort_by_key(|line| line.address);
    }
    Ok(lines)
}
