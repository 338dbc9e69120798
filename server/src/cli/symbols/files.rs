//! Finds the symbol files in folders, and explains which files are unusable.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use unjank_symbols::{Format, Found, Unusable, begins_as_symbols, compressed_with};
use walkdir::{DirEntry, WalkDir};

use crate::symbols::{Parser, ParserError, ParserLimits};

/// The maximum number of files to examine.
const MOST_FILES: usize = 1_000_000;
const DEEPEST: usize = 100;
/// These folders contain source maps of third-party packages, and old versions of files.
const SKIPPED_FOLDERS: [&str; 2] = ["node_modules", ".git"];

/// The maximum memory and time of the process that parses a file, as on a server with default settings.
const PARSER_MEMORY_BYTES: u64 = 2 << 30;
const PARSER_TIME: Duration = Duration::from_secs(300);

const NO_ID: &str = "no build id, so no frame can find it. Link with `-Wl,--build-id=sha1`. If it was linked so, a tool such as `strip -R` \
    has removed the section .note.gnu.build-id: upload the file from before";

/// A file that belongs to a build.
pub(super) struct SymbolFile {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) found: Vec<Found>,
    /// Whether the command line names the file, and not only a folder that it is in.
    pub(super) is_named: bool,
}

/// An unusable file.
pub(super) struct Useless {
    pub(super) path: PathBuf,
    pub(super) reason: String,
    /// Whether the command fails: the command line names the file, or it is a symbol file that cannot be read.
    pub(super) is_fault: bool,
}

#[derive(Default)]
pub(super) struct LocalFiles {
    pub(super) files: Vec<SymbolFile>,
    pub(super) useless: Vec<Useless>,
}

/// What the name and the first bytes of a file in a folder indicate.
enum Likely {
    Symbols,
    /// A symbol file that is compressed with this, and not in the folder without.
    Compressed(&'static str),
    Other,
}

impl SymbolFile {
    pub(super) fn has_functions(&self) -> bool {
        self.found.iter().any(|found| found.contents.functions)
    }

    pub(super) fn has_lines(&self) -> bool {
        self.found.iter().any(|found| found.contents.lines)
    }

    /// The id of the first build, which identifies the file.
    pub(super) fn id(&self) -> &str {
        let id = self.found.first().and_then(|found| found.ids.first());
        id.map_or("", String::as_str)
    }

    /// The name under which the server lists the file.
    pub(super) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// Format and processors, for a person.
    pub(super) fn kind(&self) -> String {
        let format = self.found.first().map_or("", |found| found.format.as_str());
        let mut words = vec![format];
        words.extend(self.found.iter().map(|found| found.arch.as_str()).take(4));
        words.retain(|word| !word.is_empty());
        words.dedup();
        words.join(" ")
    }

    /// Whether the file is a mapping into which R8 wrote no id: obfuscated stacks do not name it by themselves.
    pub(super) fn is_mapping_without_id(&self) -> bool {
        let is_one = |found: &Found| found.format == Format::R8 && found.ids.len() == 1;
        self.found.iter().any(is_one)
    }

    /// Describes what the file lacks, without repetitions.
    pub(super) fn warnings(&self) -> BTreeSet<&str> {
        let warnings = self.found.iter().flat_map(|found| &found.warnings);
        warnings.map(String::as_str).collect()
    }

    /// Why the file is unusable, although it was parsed.
    pub(super) fn reason_to_skip(&self) -> Option<String> {
        if self.found.iter().all(|found| found.is_id_computed) {
            Some(NO_ID.to_owned())
        } else if !self.has_functions() {
            let advice: Vec<&str> = self.warnings().into_iter().collect();
            Some(format!("stripped: no names in it. {}", advice.join(". ")))
        } else {
            None
        }
    }
}

pub(super) fn parser() -> anyhow::Result<Parser> {
    let program = std::env::current_exe().context("cannot find the program itself")?;
    let most = (PARSER_MEMORY_BYTES, PARSER_TIME);
    Ok(Parser::new(program, most, ParserLimits::Command))
}

/// Looks for symbol files in these files and folders. Does not follow symbolic links inside folders.
///
/// Another process parses each file, as on the server, so a damaged file costs neither the command nor the machine.
pub(super) async fn find(paths: &[PathBuf]) -> anyhow::Result<LocalFiles> {
    let parser = parser()?;
    let mut found = LocalFiles::default();
    let mut seen = 0;
    for root in paths {
        let wanted = |entry: &DirEntry| {
            let is_skipped = entry.depth() > 0
                && entry.file_type().is_dir()
                && SKIPPED_FOLDERS
                    .iter()
                    .any(|name| entry.file_name() == *name);
            !is_skipped
        };
        let walk = WalkDir::new(root)
            .max_depth(DEEPEST)
            .sort_by_file_name()
            .into_iter()
            .filter_entry(wanted);
        for entry in walk {
            let entry = entry.with_context(|| format!("cannot read {}", root.display()))?;
            let path = entry.path();
            // The path on the command line may be a link to a file.
            let is_named = entry.depth() == 0;
            if !(entry.file_type().is_file() || is_named && path.is_file()) {
                continue;
            }
            seen += 1;
            if seen > MOST_FILES {
                bail!("more than {MOST_FILES} files: name the folder of the build more precisely");
            }
            let likely = match is_named {
                true => Likely::Symbols,
                false => likely(path)?,
            };
            match likely {
                Likely::Symbols => look(&parser, path, is_named, &mut found).await?,
                Likely::Compressed(form) => found.useless.push(Useless {
                    path: path.to_owned(),
                    reason: Unusable::Compressed(form).to_string(),
                    is_fault: true,
                }),
                Likely::Other => {}
            }
        }
    }
    drop_lesser(&mut found);
    Ok(found)
}

async fn look(
    parser: &Parser,
    path: &Path,
    is_named: bool,
    found: &mut LocalFiles,
) -> anyhow::Result<()> {
    let metadata = path
        .metadata()
        .with_context(|| format!("cannot read {}", path.display()))?;
    let (reason, is_unreadable) = if metadata.len() == 0 {
        ("the file is empty".to_owned(), true)
    } else {
        match parser.inspect(path).await {
            Ok(builds) => {
                found.files.push(SymbolFile {
                    path: path.to_owned(),
                    bytes: metadata.len(),
                    found: builds,
                    is_named,
                });
                return Ok(());
            }
            Err(ParserError::Unsuitable(reason)) => (reason, false),
            Err(ParserError::Refused(reason) | ParserError::Ended(reason)) => (reason, true),
            Err(ParserError::Io(error)) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        }
    };
    found.useless.push(Useless {
        path: path.to_owned(),
        reason,
        is_fault: is_named || is_unreadable,
    });
    Ok(())
}

/// Drops a file found in a folder if another file of the same build contains more: a program that has a separate debug
/// file.
fn drop_lesser(local: &mut LocalFiles) {
    let rank = |file: &SymbolFile| (file.has_lines(), file.has_functions());
    let mut best: HashMap<String, ((bool, bool), PathBuf)> = HashMap::new();
    for file in &local.files {
        let known = best.entry(file.id().to_owned());
        let known = known.or_insert_with(|| (rank(file), file.path.clone()));
        if rank(file) > known.0 {
            *known = (rank(file), file.path.clone());
        }
    }
    for file in std::mem::take(&mut local.files) {
        let better = best.get(file.id()).filter(|best| best.0 > rank(&file));
        match better.filter(|_| !file.is_named) {
            Some((_, better)) => local.useless.push(Useless {
                reason: format!("{} has the same id and contains more", better.display()),
                path: file.path,
                is_fault: false,
            }),
            None => local.files.push(file),
        }
    }
}

fn likely(path: &Path) -> anyhow::Result<Likely> {
    let extension = path.extension().and_then(|end| end.to_str());
    let name = path.file_name().and_then(|name| name.to_str());
    if matches!(extension, Some("map")) || name == Some("mapping.txt") {
        return Ok(Likely::Symbols);
    }
    let mut start = Vec::new();
    let file = match File::open(path) {
        Ok(file) => file,
        // Build folders may contain files of other users. The parser says why it cannot read a symbol file.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Ok(match has_name_of_symbols(path) {
                true => Likely::Symbols,
                false => Likely::Other,
            });
        }
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", path.display()));
        }
    };
    file.take(64)
        .read_to_end(&mut start)
        .with_context(|| format!("cannot read {}", path.display()))?;
    if begins_as_symbols(&start) || (start.is_empty() && has_name_of_symbols(path)) {
        return Ok(Likely::Symbols);
    }
    let form = compressed_with(&start).filter(|_| is_compressed_symbol_file(path));
    Ok(form.map_or(Likely::Other, Likely::Compressed))
}

/// Whether the name is that of a symbol file.
fn has_name_of_symbols(path: &Path) -> bool {
    const ENDS: [&str; 8] = ["dSYM", "dbg", "debug", "map", "pdb", "so", "sym", "wasm"];
    let end = path.extension().and_then(|end| end.to_str());
    end.is_some_and(|end| ENDS.contains(&end)) || path.ends_with("mapping.txt")
}

/// Whether the name without its end, such as `.xz`, is that of a symbol file, and the folder does not have that file.
fn is_compressed_symbol_file(path: &Path) -> bool {
    /// The plugin of Gradle for Android packs symbol files of native code into an archive of this name.
    const ARCHIVE: &str = "native-debug-symbols";
    let unpacked = path.with_extension("");
    (has_name_of_symbols(&unpacked) || unpacked.ends_with(ARCHIVE)) && !unpacked.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_symbol_files_in_a_folder_are_named_if_they_are_not_there_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let (zip, xz) = (&b"PK\x03\x04\x14\0"[..], &b"\xfd7zXZ\0\0\x04"[..]);
        let gzip = &b"\x1f\x8b\x08\0"[..];
        for (name, content, expected) in [
            ("native-debug-symbols.zip", zip, "ZIP"),
            ("libpay.so.xz", xz, "xz"),
            ("mapping.txt.gz", gzip, "gzip"),
            ("app.js.map", &b"{}"[..], "symbols"),
            ("app.js.map.gz", gzip, "other"),
            ("app.js.gz", gzip, "other"),
            ("shop.zip", zip, "other"),
            ("libcut.so.xz", &b"text"[..], "other"),
            ("libcart.so.bz2", &b"BZh91AY"[..], "bzip2"),
            ("libcart.sym.7z", &b"7z\xbc\xaf\x27\x1c\0\x04"[..], "7z"),
            ("libempty.so", &b""[..], "symbols"),
            ("liblinked.so", &b"INPUT(libshop.so.1)"[..], "other"),
            ("empty.txt", &b""[..], "other"),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            let found = match likely(&path).unwrap() {
                Likely::Compressed(form) => form,
                Likely::Symbols => "symbols",
                Likely::Other => "other",
            };
            assert_eq!(found, expected, "{name}");
        }
    }
}
