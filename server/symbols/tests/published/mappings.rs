//! Mappings of R8, in the package `proguard`.

use proguard::{ProguardMapper, ProguardMapping, ProguardRecord, StackFrame};
use unjank_symbols::{Format, JavaFrame, LookupKind, inspect};

use super::{folder_of, lookup};

/// The obfuscated class, function and line of each range of lines in a mapping: its first, middle and last line.
fn frames(mapping: &[u8]) -> Vec<(&str, &str, u32)> {
    let mut frames = Vec::new();
    let mut class = "";
    for line in mapping.split(|byte| *byte == b'\n') {
        match ProguardRecord::try_parse(line) {
            Ok(ProguardRecord::Class { obfuscated, .. }) => class = obfuscated,
            Ok(ProguardRecord::Method {
                obfuscated,
                line_mapping: Some(lines),
                ..
            }) => {
                let ends = lines.startline.zip(lines.endline);
                let Some((first, last)) = ends.filter(|(first, last)| *first > 0 && first <= last)
                else {
                    continue;
                };
                for line in [first, usize::midpoint(first, last), last] {
                    frames.push((class, obfuscated, u32::try_from(line).unwrap()));
                }
            }
            _ => {}
        }
    }
    frames.sort_unstable();
    frames.dedup();
    frames
}

#[test]
fn mappings_give_the_functions_and_lines_that_the_crate_proguard_gives() {
    let folder = folder_of("proguard").join("tests/res");
    let mut wrong = Vec::new();
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let data = std::fs::read(&path).unwrap();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        assert_eq!(inspect(&data).unwrap()[0].format, Format::R8, "{name}");
        let lookup = lookup(&data, LookupKind::Java);
        let mapper = ProguardMapper::new(ProguardMapping::new(&data));
        for (class, function, line) in frames(&data) {
            let frame = JavaFrame {
                class,
                function,
                file: "SourceFile",
                line,
            };
            let mut ours: Vec<String> = lookup.java(&[frame], None)[0]
                .iter()
                .flatten()
                .map(|found| {
                    format!(
                        "{}.{} {}:{}",
                        found.class, found.function, found.file, found.line
                    )
                })
                .collect();
            let reported = StackFrame::with_file(class, function, line as usize, "SourceFile");
            let mut theirs: Vec<String> = mapper
                .remap_frame(&reported)
                // R8 leaves out what it has added itself.
                .filter(|found| !found.method_synthesized())
                .map(|found| {
                    let (file, line) = (found.file().unwrap_or_default(), found.line());
                    format!(
                        "{}.{} {file}:{}",
                        found.class(),
                        found.method(),
                        line.unwrap_or_default()
                    )
                })
                .collect();
            // Constructors with the same lines are one function to a reader.
            theirs.dedup();
            ours.dedup();
            compared += 1;
            // Without the frame that calls it, an outline has no function.
            let is_outline = ours.is_empty() && name.starts_with("mapping-outline");
            if ours != theirs && !is_outline {
                wrong.push(format!(
                    "{name} {class}.{function}:{line}\n  {ours:?}\n  {theirs:?}"
                ));
            }
        }
    }
    assert!(compared > 1_000, "{compared}");
    assert!(
        wrong.is_empty(),
        "{} of {compared}\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
