//! What the first bytes of a file say about it.

use crate::error::Unusable;

/// In front of texts that editors of Windows write.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How much of a file shows whether it is text.
const START: usize = 512;

/// Whether the first bytes of a file are those of a symbol file. It may be damaged all the same. Source maps and mappings of other tools than
/// R8 have no such bytes. 64 bytes suffice.
#[must_use]
pub fn begins_as_symbols(start: &[u8]) -> bool {
    const STARTS: [&[u8]; 10] = [
        // Mach-O for one processor.
        &[0xfe, 0xed, 0xfa, 0xce],
        &[0xfe, 0xed, 0xfa, 0xcf],
        &[0xce, 0xfa, 0xed, 0xfe],
        &[0xcf, 0xfa, 0xed, 0xfe],
        // PDB, Breakpad, WebAssembly, a bundle of scripts, a mapping of R8.
        b"Microsoft C/C++ MSF 7.00",
        b"MODULE ",
        b"\0asm",
        b"SYSB",
        b"# compiler: R8",
        b"# pg_map_id",
    ];
    let start = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    if STARTS.iter().any(|known| start.starts_with(known)) {
        return true;
    }
    let byte = |place: usize| start.get(place).copied().unwrap_or_default();
    if start.starts_with(b"\x7fELF") {
        // Object files are not linked yet, so they belong to no build.
        const RELOCATABLE: u8 = 1;
        let (low, high) = match byte(5) {
            2 => (byte(17), byte(16)),
            _ => (byte(16), byte(17)),
        };
        return (low, high) != (RELOCATABLE, 0);
    }
    // A universal Mach-O begins like a Java class file. Then follows the number of its processors.
    start.starts_with(&[0xca, 0xfe, 0xba, 0xbe]) && byte(4) == 0 && byte(6) == 0 && byte(7) < 30
}

/// Returns what a file is compressed with, by its first bytes. Archives of several files count, too.
#[must_use]
pub fn compressed_with(start: &[u8]) -> Option<&'static str> {
    const STARTS: [(&[u8], &str); 7] = [
        (&[0x1f, 0x8b], "gzip"),
        (b"PK\x03\x04", "ZIP"),
        (b"\xfd7zXZ\0", "xz"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
        (b"BZh", "bzip2"),
        (b"7z\xbc\xaf\x27\x1c", "7z"),
        (&[0x04, 0x22, 0x4d, 0x18], "lz4"),
    ];
    let known = STARTS.iter().find(|(first, _)| start.starts_with(first));
    known.map(|(_, form)| *form)
}

/// Why a file of no known format is of no use.
pub(crate) fn unknown(data: &[u8]) -> Unusable {
    if is_utf16(data) {
        return Unusable::Utf16;
    }
    if let Some(form) = compressed_with(data) {
        return Unusable::Compressed(form);
    }
    match begins_as_symbols(data) {
        true if data.starts_with(BYTE_ORDER_MARK) => Unusable::Damaged(
            "a byte order mark is in front of it, which an editor has added. Upload the file that the build wrote"
                .to_owned(),
        ),
        true => Unusable::Damaged(
            "it begins like a symbol file, but ends early or continues as something else".to_owned(),
        ),
        false => Unusable::UnknownFormat,
    }
}

/// Whether a file is a source map or a mapping in UTF-16.
fn is_utf16(data: &[u8]) -> bool {
    let start = data.get(..data.len().min(START)).unwrap_or_default();
    let text = start.strip_prefix(b"\xff\xfe");
    let text = text.or_else(|| start.strip_prefix(b"\xfe\xff"));
    let text = text.unwrap_or(start);
    let letters: Vec<u8> = text.iter().copied().filter(|byte| *byte != 0).collect();
    // Every other byte of ASCII is zero.
    let is_wide = text.len() >= 4 && letters.len() <= text.len().div_ceil(2);
    let letters = letters.trim_ascii_start();
    let starts = [&b"{"[..], b")]}", b"#"];
    is_wide
        && (starts.iter().any(|start| letters.starts_with(start))
            || letters.windows(4).any(|part| part == b" -> "))
}

#[cfg(test)]
mod tests {
    use super::begins_as_symbols;

    #[test]
    fn java_classes_and_object_files_are_not_symbol_files() {
        let elf = |kind: u8| [&b"\x7fELF\x02\x01\x01"[..], &[0; 9], &[kind, 0]].concat();
        assert!(begins_as_symbols(&elf(3)));
        assert!(!begins_as_symbols(&elf(1)));
        assert!(begins_as_symbols(&[0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 2]));
        assert!(!begins_as_symbols(&[0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 65]));
        assert!(begins_as_symbols("\u{feff}MODULE Linux".as_bytes()));
        assert!(!begins_as_symbols(b"fn main() {}"));
        assert!(!begins_as_symbols(b""));
    }
}
