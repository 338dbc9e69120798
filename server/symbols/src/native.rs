//! Native code: addresses to functions.

mod debug_info;
mod discarded_functions;
mod labels;
mod lines;
mod replaced_sections;
mod shared;

use std::collections::BTreeSet;
use std::io::Write;

use symbolic::common::CodeId;
use symbolic::debuginfo::dwarf::{Dwarf, DwarfDebugSession};
use symbolic::debuginfo::elf::ElfObject;
use symbolic::debuginfo::{
    Archive, FileFormat, Object, ObjectError, ObjectLike, ParseObjectOptions, Symbol,
};
use symbolic::symcache::transform::{SourceLocation, Transformer};
use symbolic::symcache::{SymCache, SymCacheConverter};

use self::debug_info::DebugInfo;
use self::discarded_functions::{Code, without_dropped_lines};
use self::labels::labels;
use self::lines::Lines;
use crate::error::{ConvertError, Unusable, causes};
use crate::found::MAX_FOUND;
use crate::names::{readable, with_module};
use crate::{Contents, Format, Found, Location, MAX_LOCATIONS, Origin, SymbolId};

/// The maximum size of a section of an ELF file after decompression. Those of browsers have about one GiB.
const MAX_SECTION_BYTES: usize = 2 << 30;
/// zlib compresses a byte to a thousandth of one at most. The limit holds for zstd, too, whose sections of zeros can be smaller still.
const MAX_INFLATION: usize = 1_100;

/// Parses a file. Limits the size that a section declares, because the parser reserves the memory for it.
fn parse(data: &[u8]) -> Result<Archive<'_>, ObjectError> {
    let mut options = ParseObjectOptions::default();
    let most = data.len().saturating_mul(MAX_INFLATION);
    options.max_decompressed_section_size = Some(most.min(MAX_SECTION_BYTES));
    Archive::parse_with_opts(data, options)
}

pub(crate) fn inspect(data: &[u8]) -> Result<Vec<Found>, Unusable> {
    let damaged = |error: &dyn std::error::Error| Unusable::Damaged(causes(error));
    let archive = parse(data).map_err(|error| damaged(&error))?;
    if archive.object_count() > MAX_FOUND {
        return Err(Unusable::TooMany(MAX_FOUND));
    }
    let mut found = Vec::new();
    for (index, object) in (0_u32..).zip(archive.objects()) {
        let object = object.map_err(|error| damaged(&error))?;
        found.push(inspect_object(index, &object)?);
    }
    Ok(found)
}

fn inspect_object(index: u32, object: &Object<'_>) -> Result<Found, Unusable> {
    let (format, name) = match object.file_format() {
        FileFormat::Elf => (Format::Elf, "this ELF file"),
        FileFormat::MachO => (Format::MachO, "this Mach-O file"),
        FileFormat::Pdb => (Format::Pdb, "this PDB"),
        FileFormat::Pe => (Format::Pe, "this PE file"),
        FileFormat::Breakpad => (Format::Breakpad, "this Breakpad file"),
        FileFormat::Wasm => (Format::Wasm, "this WebAssembly file"),
        _ => return Err(Unusable::UnknownFormat),
    };
    if object.is_malformed() {
        return Err(Unusable::Damaged(format!(
            "{name} ends early or refers to bytes outside of it"
        )));
    }
    if let Some(section) = debug_info::unreadable_section(object) {
        return Err(Unusable::Damaged(format!(
            "its section .{section} cannot be decompressed, or declares more than it can contain"
        )));
    }
    let debug_info = DebugInfo::of(object);
    if debug_info.is_package {
        return Err(Unusable::Package);
    }
    let ids = ids_of(object);
    if ids.is_empty() {
        return Err(Unusable::NoId(name));
    }
    // A stripped program still lists the functions that it calls in libraries.
    let has_names = match object {
        Object::Elf(elf) => elf.symbols().next().is_some(),
        _ => object.has_symbols(),
    };
    let contents = Contents {
        functions: has_names || object.has_debug_info(),
        lines: object.has_debug_info() && debug_info.is_of_program(),
    };
    Ok(Found {
        index,
        format,
        ids,
        arch: object.arch().name().to_owned(),
        name: String::new(),
        contents,
        is_id_computed: format == Format::Elf && object.code_id().is_none(),
        warnings: debug_info.warnings(format, contents),
        needs: debug_info.shared.map(|shared| shared.id),
    })
}

/// The id first that the tools of the platform print and that devices send: the build id of ELF and WebAssembly, else the debug id.
fn ids_of(object: &Object<'_>) -> Vec<String> {
    let format = object.file_format();
    let code_id = object.code_id();
    let mut build_ids = Vec::new();
    if let Some(id) = &code_id {
        build_ids.push(id.to_string());
        build_ids.extend(without_length(id).filter(|_| format == FileFormat::Wasm));
    }
    let debug_id = object.debug_id();
    let mut debug_ids = Vec::new();
    if !debug_id.is_nil() {
        // Windows counts how often a PDB was linked. Some tools always write that number, others only if it is not 0.
        debug_ids.push(debug_id.to_string());
        debug_ids.push(debug_id.breakpad().to_string());
    }
    // A Breakpad file of Windows has the time and the size of the program instead of a build id.
    let has_build_id = match format {
        FileFormat::Elf | FileFormat::Wasm => true,
        FileFormat::Breakpad => code_id.is_some_and(|id| id.as_str().len() >= 32),
        _ => false,
    };
    let texts = match has_build_id {
        true => [build_ids, debug_ids],
        false => [debug_ids, build_ids],
    };
    let mut known = BTreeSet::new();
    texts
        .iter()
        .flatten()
        .filter_map(|text| SymbolId::parse(text))
        .filter(|id| known.insert(id.clone()))
        .map(|id| id.as_str().to_owned())
        .collect()
}

/// In WebAssembly, some linkers write the length in front of the id, which some tools then take for a part of the id.
fn without_length(id: &CodeId) -> Option<String> {
    let (length, rest) = id.as_str().split_at_checked(2)?;
    let bytes = usize::from_str_radix(length, 16).ok()?;
    (2 * bytes == rest.len()).then(|| rest.to_owned())
}

/// `shared` is the file that [`Found::needs`] names, if it is there.
pub(crate) fn convert(
    data: &[u8],
    index: u32,
    shared: Option<&[u8]>,
    out: &mut dyn Write,
) -> Result<(), ConvertError> {
    let archive = parse(data).map_err(|error| ConvertError::damaged(&error))?;
    let object = archive
        .object_by_index(index as usize)
        .map_err(|error| ConvertError::damaged(&error))?
        .ok_or(ConvertError::NoSuchBuild(index))?;
    if has_absurd_sizes(&object) {
        return Err(ConvertError::Damaged(
            "a symbol or a function ends beyond the last address".to_owned(),
        ));
    }
    let mut converter = SymCacheConverter::new();
    converter.add_transformer(NamedFiles);
    match (&object, shared) {
        (Object::Elf(program), Some(shared)) => {
            let shared = ElfObject::parse(shared).map_err(|error| ConvertError::damaged(&error))?;
            let joined =
                shared::join(program, &shared).map_err(|error| ConvertError::damaged(&error))?;
            let code = Code::of_elf(program.data());
            process(&mut converter, program, &joined, &labels(program), &code)?;
        }
        (Object::Elf(program), None) => {
            let code = Code::of_elf(program.data());
            process(&mut converter, program, program, &labels(program), &code)?;
        }
        (Object::MachO(program), _) => {
            process(&mut converter, program, program, &[], &Code::anywhere())?;
        }
        _ => converter
            .process_object(&object)
            .map_err(|error| ConvertError::damaged(&error))?,
    }
    converter.serialize(&mut &mut *out)?;
    Ok(())
}

/// Leaves the file of a place unknown if the debug information does not name it. The folder of the compiler would stand for it.
struct NamedFiles;

impl Transformer for NamedFiles {
    fn transform_source_location<'f>(
        &'f mut self,
        mut place: SourceLocation<'f>,
    ) -> SourceLocation<'f> {
        if place.file.name.is_empty() {
            place.file.directory = None;
            place.file.comp_dir = None;
        }
        place
    }
}

/// Whether a function goes beyond the last address. The converter adds addresses and sizes without a check.
fn has_absurd_sizes(object: &Object<'_>) -> bool {
    let is_absurd = |address: u64, size: u64| address.checked_add(size).is_none();
    let mut symbols = object.symbols();
    if symbols.any(|symbol| is_absurd(symbol.address, symbol.size)) {
        return true;
    }
    let Object::Breakpad(file) = object else {
        return false;
    };
    let mut functions = file.func_records().flatten();
    functions.any(|function| is_absurd(function.address, function.size))
}

/// Adds the functions, lines and symbols of a program. Its debug information may be in several files.
fn process<'d: 'o, 'o>(
    converter: &mut SymCacheConverter<'_>,
    program: &'o impl ObjectLike<'d, 'o>,
    debug: &impl Dwarf<'d>,
    labels: &[Symbol<'d>],
    code: &Code,
) -> Result<(), ConvertError> {
    let symbols = program.symbol_map();
    // Addresses in the image are relative to where the program is loaded.
    let load_address = program.load_address();
    let debug = without_dropped_lines(debug, code);
    let session = DwarfDebugSession::parse(
        &debug,
        symbols.clone(),
        load_address.cast_signed(),
        program.kind(),
    )
    .map_err(|error| ConvertError::damaged(&error))?;
    converter.set_arch(program.arch());
    converter.set_debug_id(program.debug_id());
    let mut lines = Lines::default();
    for function in session.functions() {
        let function = function.map_err(|error| ConvertError::damaged(&error))?;
        if code.contains(function.address.wrapping_add(load_address)) {
            lines.know(&function);
            converter.process_symbolic_function(&function);
        }
    }
    // Where there are both, the symbol of a function is better than a label.
    let named = labels.iter().chain(symbols.iter());
    lines.find(&debug, named, load_address, |function| {
        converter.process_symbolic_function(function);
    });
    for symbol in program.symbols() {
        converter.process_symbolic_symbol(&symbol);
    }
    Ok(())
}

/// Returns the functions at an offset, innermost first: the inlined ones, then the one they were inlined into.
pub(crate) fn lookup(symbols: &SymCache<'_>, offset: u64) -> Vec<Location> {
    let mut locations: Vec<Location> = symbols
        .lookup(offset)
        .take(MAX_LOCATIONS)
        .map(|location| {
            let symbol = location.function().name_for_demangling();
            let name = readable(&symbol);
            let file = location.file().map(|file| file.full_path());
            let file = file.unwrap_or_default();
            Location {
                class: name.class,
                function: with_module(name.function, symbol.language(), &file),
                file,
                line: location.line(),
                origin: Origin::Inlined,
                alternative: 0,
            }
        })
        // The name may be in a file that is not here.
        .filter(|location| !location.function.is_empty())
        .collect();
    if let Some(outermost) = locations.last_mut() {
        outermost.origin = Origin::Called;
    }
    locations
}
