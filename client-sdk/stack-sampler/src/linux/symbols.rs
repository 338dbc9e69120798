//! The names of an image's functions, as far as the device has them.
//!
//! Keeps twelve bytes per function. A name is read from the file when it first occurs in a stack.

use std::collections::HashMap;
use std::sync::Arc;

use object::elf::{self, Sym64};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{LittleEndian, SectionIndex};

use super::image::{Data, Header, Image, Sections};

/// Images with more functions get no names on the device: 12 MiB is enough memory to use in an app.
const MAX_FUNCTIONS: usize = 1 << 20;

/// Longer names are not read. The longest names of real programs are a tenth of this.
const MAX_NAME_BYTES: u64 = 8 << 10;

/// Maximum number of cached names per image. When it is exceeded, the cache is cleared.
const MAX_NAMES: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Symbols {
    /// By start.
    functions: Vec<Function>,
    /// The offset of the names in the image.
    names_start: u64,
    names: HashMap<u32, Option<Arc<str>>>,
}

#[derive(Debug, Clone, Copy)]
struct Function {
    /// Relative to the start of the image.
    start: u32,
    length: u32,
    /// Relative to the start of the names.
    name: u32,
}

impl Symbols {
    /// Reads the table of functions: the linker's, or if that was stripped, the loader's.
    pub(super) fn read(image: &Image) -> Self {
        let read = || {
            let cache = image.source.open()?;
            let data = image.source.data(&cache);
            let header = Header::parse(data).ok()?;
            let sections = header.sections(LittleEndian, data).ok()?;
            let tables = [elf::SHT_SYMTAB, elf::SHT_DYNSYM];
            let mut tables = tables
                .into_iter()
                .filter_map(|kind| Self::of_table(image, &sections, data, kind));
            tables.find(|symbols| !symbols.functions.is_empty())
        };
        read().unwrap_or_default()
    }

    fn of_table(image: &Image, sections: &Sections<'_>, data: Data<'_>, kind: u32) -> Option<Self> {
        let mut all = sections.iter();
        let table = all.find(|section| section.sh_type(LittleEndian) == kind)?;
        let names = usize::try_from(table.sh_link(LittleEndian)).ok()?;
        let names = sections.section(SectionIndex(names)).ok()?;
        let symbols: &[Sym64<LittleEndian>] = table.data_as_array(LittleEndian, data).ok()?;
        let mut functions: Vec<Function> = symbols
            .iter()
            .filter_map(|symbol| Function::from_elf(symbol, image.own_base))
            .take(MAX_FUNCTIONS.saturating_add(1))
            .collect();
        if functions.len() > MAX_FUNCTIONS {
            functions = Vec::new();
        }
        // Of several names for one address, the one of the longest function comes last, where the lookup finds it.
        functions.sort_by_key(|one| (one.start, one.length));
        functions.dedup_by(|next, kept| {
            let same = next.start == kept.start;
            kept.length = if same { next.length } else { kept.length };
            same
        });
        functions.shrink_to_fit();
        Some(Self {
            functions,
            names_start: names.sh_offset(LittleEndian),
            names: HashMap::new(),
        })
    }

    /// Returns the name of the function that contains the byte `offset` of the image.
    pub(super) fn name(&mut self, image: &Image, offset: u64) -> Option<Arc<str>> {
        let offset = u32::try_from(offset).ok()?;
        let after = self.functions.partition_point(|one| one.start <= offset);
        let function = self.functions.get(after.checked_sub(1)?)?;
        // Assembly functions may have no length; they extend to the next function.
        let within = offset.saturating_sub(function.start);
        if function.length != 0 && within >= function.length {
            return None;
        }
        if self.names.len() >= MAX_NAMES {
            self.names.clear();
        }
        let place = self.names_start.checked_add(u64::from(function.name))?;
        let name = self.names.entry(function.name).or_insert_with(|| {
            let name = image.source.text(place, MAX_NAME_BYTES)?;
            (!name.is_empty()).then(|| name.into())
        });
        name.clone()
    }
}

impl Function {
    fn from_elf(symbol: &Sym64<LittleEndian>, own_base: u64) -> Option<Self> {
        let kind = symbol.st_type();
        let is_code = kind == elf::STT_FUNC || kind == elf::STT_GNU_IFUNC;
        if !is_code || symbol.is_undefined(LittleEndian) {
            return None;
        }
        let start = symbol.st_value(LittleEndian).checked_sub(own_base)?;
        Some(Self {
            start: u32::try_from(start).ok()?,
            length: u32::try_from(symbol.st_size(LittleEndian)).unwrap_or(u32::MAX),
            name: symbol.st_name(LittleEndian),
        })
    }
}
