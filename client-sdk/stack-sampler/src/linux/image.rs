//! An ELF image: its position in memory, its build id and its unwind tables.

use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use framehop::ExplicitModuleSectionInfo;
use object::LittleEndian;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable};
use object::read::{ReadCache, ReadCacheRange};

#[cfg(target_arch = "x86_64")]
use super::function_table::FunctionTable;
use super::maps::{Mapping, VDSO};

/// Larger tables are not read. The frames of such a module are unwound by frame pointers.
const MAX_TABLE_BYTES: u64 = 64 << 20;

/// How much of the start of an image is read from memory if its file is gone: enough for the headers and the build id.
const START_BYTES: u64 = 64 << 10;

/// How much of the start of an image has to be the same in memory and in the file.
const COMPARED_BYTES: usize = 4096;

pub(super) type Header = FileHeader64<LittleEndian>;
pub(super) type Cache = ReadCache<Box<dyn ReadSeek>>;
pub(super) type Data<'c> = ReadCacheRange<'c, Box<dyn ReadSeek>>;
pub(super) type Sections<'c> = SectionTable<'c, Header, Data<'c>>;

/// A file or a piece of memory.
pub(super) trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// The location of an image's bytes.
#[derive(Debug)]
pub(super) struct Source {
    path: Arc<str>,
    /// The offset of the image in the file.
    start: u64,
    /// The address that the start of the image is mapped to, and how many bytes of it can be read there.
    address: u64,
    length: u64,
}

impl Source {
    fn from_mapping(mapping: &Mapping) -> Option<Self> {
        let memory = File::open("/proc/self/mem").ok();
        let file = File::open(&*mapping.path).ok();
        let bytes = file.as_ref().or(memory.as_ref())?;
        let starts_image = |(address, offset): &(u64, u64)| {
            let place = if file.is_some() { *offset } else { *address };
            let mut magic = [0; 4];
            bytes.read_exact_at(&mut magic, place).is_ok() && magic == elf::ELFMAG
        };
        let mut candidates = mapping.candidates.iter().rev();
        let (address, start) = candidates.find(|place| starts_image(place))?;
        Some(Self {
            path: Arc::clone(&mapping.path),
            start: *start,
            address: *address,
            length: mapping.end.saturating_sub(*address),
        })
    }

    /// Opens the image. Returns `None` if its bytes are unavailable or no longer match the mapping.
    pub(super) fn open(&self) -> Option<Cache> {
        if &*self.path == VDSO {
            let mut bytes = vec![0; usize::try_from(self.length).ok()?];
            let memory = File::open("/proc/self/mem").ok()?;
            memory.read_exact_at(&mut bytes, self.address).ok()?;
            return Some(ReadCache::new(Box::new(Cursor::new(bytes))));
        }
        // An executable that was deleted or replaced while it runs can still be read through its link.
        let mut paths = [&*self.path, "/proc/self/exe"].into_iter();
        let file = paths.find_map(|path| {
            let file = File::open(path).ok()?;
            self.is_mapped_from(&file).then_some(file)
        })?;
        Some(ReadCache::new(Box::new(file)))
    }

    /// Reads the start of the image from memory. An update may have deleted or replaced the file since the program loaded it.
    fn open_start(&self) -> Option<Cache> {
        let mut bytes = vec![0; usize::try_from(self.length.min(START_BYTES)).ok()?];
        let memory = File::open("/proc/self/mem").ok()?;
        let read = memory.read_at(&mut bytes, self.address).ok()?;
        bytes.truncate(read);
        Some(ReadCache::new(Box::new(Cursor::new(bytes))))
    }

    /// Returns the part of the file that is the image.
    pub(super) fn data<'c>(&self, cache: &'c Cache) -> Data<'c> {
        cache.range(self.start, u64::MAX.saturating_sub(self.start))
    }

    /// Returns whether the file starts with the same bytes as the memory. An update replaces files under running programs, and
    /// tables of another build are worse than none. Returns `true` if the memory cannot be read.
    fn is_mapped_from(&self, file: &File) -> bool {
        let (mut mapped, mut stored) = ([0; COMPARED_BYTES], [0; COMPARED_BYTES]);
        let length =
            usize::try_from(self.length).map_or(COMPARED_BYTES, |all| all.min(COMPARED_BYTES));
        let (Some(mapped), Some(stored)) = (mapped.get_mut(..length), stored.get_mut(..length))
        else {
            return false;
        };
        let memory = File::open("/proc/self/mem");
        match memory.and_then(|memory| memory.read_exact_at(mapped, self.address)) {
            Ok(()) => file.read_exact_at(stored, self.start).is_ok() && mapped == stored,
            Err(_) => true,
        }
    }

    /// Reads the text that starts at `place` in the image and ends with a zero byte.
    pub(super) fn text(&self, place: u64, max_bytes: u64) -> Option<String> {
        let mut file = self.open()?.into_inner();
        file.seek(SeekFrom::Start(self.start.checked_add(place)?))
            .ok()?;
        let mut bytes = Vec::new();
        file.take(max_bytes).read_to_end(&mut bytes).ok()?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        bytes.truncate(end);
        String::from_utf8(bytes).ok()
    }
}

/// What is known about the image behind a mapping.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) source: Source,
    pub(super) build_id: Arc<str>,
    /// The address of the start of the image, in this process and according to the image itself.
    pub(super) base: u64,
    pub(super) own_base: u64,
    #[cfg(target_arch = "x86_64")]
    pub(super) function_table: Option<FunctionTable>,
}

/// The tables that the unwinder needs.
pub(super) type Tables = ExplicitModuleSectionInfo<Vec<u8>>;

impl Image {
    /// Reads the image behind `mapping`: from its file, or its start from memory. Then there are no tables.
    pub(super) fn read(mapping: &Mapping) -> Option<(Self, Tables)> {
        let source = Source::from_mapping(mapping)?;
        if let Some(file) = source.open() {
            let data = source.data(&file);
            return Self::parse(source, data, mapping);
        }
        let start = source.open_start()?;
        Self::parse(source, start.range(0, START_BYTES), mapping)
    }

    fn parse(source: Source, data: Data<'_>, mapping: &Mapping) -> Option<(Self, Tables)> {
        let header = Header::parse(data).ok()?;
        let segments = header.program_headers(LittleEndian, data).ok()?;
        let loaded = || {
            let all = segments.iter();
            all.filter(|segment| segment.p_type(LittleEndian) == elf::PT_LOAD)
        };
        let own_base = loaded().map(|one| one.p_vaddr(LittleEndian)).min()?;
        let offset = mapping.offset.checked_sub(source.start)?;
        let length = mapping.end.saturating_sub(mapping.start);
        // Segments may share a page, which is then mapped for both. Only one of them contains code.
        let segment = loaded().find(|segment| {
            let start = segment.p_offset(LittleEndian);
            let end = start.saturating_add(segment.p_filesz(LittleEndian));
            let is_code = segment.p_flags(LittleEndian) & elf::PF_X != 0;
            is_code && offset < end && start < offset.saturating_add(length)
        })?;
        // The mapping starts at a page boundary, and the segment somewhere in that page. Both have the same distance to the
        // image.
        let own_start = segment
            .p_vaddr(LittleEndian)
            .wrapping_add(offset)
            .wrapping_sub(segment.p_offset(LittleEndian));
        let base = mapping.start.wrapping_sub(own_start).wrapping_add(own_base);
        let sections = header.sections(LittleEndian, data);
        let tables = sections.map(|sections| tables(&sections, data, own_base));
        let tables = tables.unwrap_or_default();
        let image = Self {
            source,
            build_id: build_id(segments, data).unwrap_or_default().into(),
            base,
            own_base,
            #[cfg(target_arch = "x86_64")]
            function_table: tables.eh_frame_hdr_svma.as_ref().map(|range| {
                let start = range.start.wrapping_sub(own_base).wrapping_add(base);
                FunctionTable::new(start)
            }),
        };
        Some((image, tables))
    }
}

fn build_id(segments: &[ProgramHeader64<LittleEndian>], data: Data<'_>) -> Option<String> {
    let mut notes = segments
        .iter()
        .filter_map(|segment| segment.notes(LittleEndian, data).ok().flatten());
    notes.find_map(|mut notes| {
        let mut rest = std::iter::from_fn(|| notes.next().ok().flatten());
        let id = rest.find(|note| {
            note.name() == elf::ELF_NOTE_GNU && note.n_type(LittleEndian) == elf::NT_GNU_BUILD_ID
        })?;
        Some(hex(id.desc()))
    })
}

fn tables(sections: &Sections<'_>, data: Data<'_>, own_base: u64) -> Tables {
    let part = |name| section(sections, data, name);
    let range = |name| section_range(sections, name);
    Tables {
        base_svma: own_base,
        text_svma: range(".text"),
        got_svma: range(".got"),
        eh_frame_svma: range(".eh_frame"),
        eh_frame: part(".eh_frame"),
        eh_frame_hdr_svma: range(".eh_frame_hdr"),
        eh_frame_hdr: part(".eh_frame_hdr"),
        ..Tables::default()
    }
}

fn section_range(sections: &Sections<'_>, name: &str) -> Option<Range<u64>> {
    let (_, section) = sections.section_by_name(LittleEndian, name.as_bytes())?;
    let start = section.sh_addr(LittleEndian);
    Some(start..start.checked_add(section.sh_size(LittleEndian))?)
}

fn section(sections: &Sections<'_>, data: Data<'_>, name: &str) -> Option<Vec<u8>> {
    let (_, section) = sections.section_by_name(LittleEndian, name.as_bytes())?;
    if section.sh_size(LittleEndian) > MAX_TABLE_BYTES {
        return None;
    }
    let bytes = section.data(LittleEndian, data).ok()?;
    (!bytes.is_empty()).then(|| bytes.to_vec())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for byte in bytes {
        // Writing to a string cannot fail.
        write!(text, "{byte:02x}").unwrap_or_default();
    }
    text
}
