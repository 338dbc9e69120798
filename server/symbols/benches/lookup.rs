//! Looks up frames in lookup files: one frame of each kind, and a cold file. Run with `cargo bench -p unjank-symbols`.
//!
//! R8: a made-up mapping of 50 MB, with inlined functions. Native: this program itself. JavaScript: a made-up source map of 200,000 places.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark stops if its files cannot be made, and prints their sizes"
)]

use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use unjank_symbols::{JavaFrame, LookupFile, LookupKind, convert};

/// Each class has 30 functions with 12 lines each, of which two are inlined.
fn mapping(bytes: usize) -> String {
    let mut mapping = String::from("# compiler: R8\n");
    for class in 0.. {
        if mapping.len() >= bytes {
            break;
        }
        writeln!(
            mapping,
            "com.example.shop.package{}.Class{class} -> a.b{class}:",
            class % 300
        )
        .unwrap();
        writeln!(
            mapping,
            "# {{\"id\":\"sourceFile\",\"fileName\":\"Class{class}.kt\"}}"
        )
        .unwrap();
        for function in 0..30 {
            for line in 1..=10 {
                let signature = format!("void function{function}(int,java.lang.String)");
                writeln!(
                    mapping,
                    "    {line}:{line}:{signature}:{0}:{0} -> f{function}",
                    100 + line
                )
                .unwrap();
            }
            writeln!(
                mapping,
                "    11:12:int com.example.shop.Price.round(int):40:41 -> f{function}"
            )
            .unwrap();
            writeln!(
                mapping,
                "    11:12:void function{function}(int,java.lang.String):120 -> f{function}"
            )
            .unwrap();
        }
    }
    mapping
}

fn converted(data: &[u8], path: &Path) {
    convert(data, 0, &mut std::fs::File::create(path).unwrap()).unwrap();
}

/// Prints the time of a frame: the fastest of ten rounds, because other work on the machine only makes a round slower.
fn print_frame(name: &str, frames: usize, look_up: impl Fn()) {
    const TIMES: u32 = 200;
    let round = || {
        let begun = Instant::now();
        (0..TIMES).for_each(|_| look_up());
        begun.elapsed() / TIMES
    };
    let fastest = (0..10).map(|_| round()).min().unwrap();
    let micros = fastest.as_secs_f64() * 1e6 / frames as f64;
    println!("{name}, warm: {micros:.2} µs a frame");
}

fn r8(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r8");
    let mapping = mapping(50 << 20);
    let small = self::mapping(2 << 20);
    criterion.bench_function("convert an R8 mapping of 2 MB", |bencher| {
        bencher.iter(|| convert(small.as_bytes(), 0, &mut Vec::new()).unwrap());
    });
    converted(mapping.as_bytes(), &path);
    let classes = mapping.matches("sourceFile").count();
    let names: Vec<(String, String)> = (0..64)
        .map(|frame| {
            (
                format!("a.b{}", frame * 7919 % classes),
                format!("f{}", frame % 30),
            )
        })
        .collect();
    let frames: Vec<JavaFrame<'_>> = (0..)
        .zip(&names)
        .map(|(frame, (class, function))| JavaFrame {
            class,
            function,
            file: "SourceFile",
            line: 1 + frame % 12,
        })
        .collect();
    let lookup = LookupFile::open(&path, LookupKind::Java).unwrap();
    assert!(
        lookup
            .java(&frames, None)
            .iter()
            .all(|located| located.as_ref().unwrap()[0].line > 0)
    );
    println!(
        "R8: mapping {} MB, lookup file {} MB",
        mapping.len() >> 20,
        lookup.size() >> 20
    );
    let mut group = criterion.benchmark_group("r8");
    group.throughput(criterion::Throughput::Elements(frames.len() as u64));
    group.bench_function("64 frames, warm", |bencher| {
        bencher.iter(|| black_box(lookup.java(black_box(&frames), None)));
    });
    group.finish();
    print_frame("R8", frames.len(), || {
        black_box(lookup.java(black_box(&frames), None));
    });
    criterion.bench_function(
        "open an R8 lookup file of 50 MB and look up a frame",
        |bencher| {
            bencher.iter(|| {
                let lookup = LookupFile::open(&path, LookupKind::Java).unwrap();
                black_box(lookup.java(&frames[..1], None))
            });
        },
    );
}

fn native(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("native");
    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    converted(&program, &path);
    let lookup = LookupFile::open(&path, LookupKind::Native).unwrap();
    let named = (0_u64..)
        .step_by(977)
        .filter(|offset| !lookup.native(*offset).is_empty());
    let offsets: Vec<u64> = named.take(64).collect();
    println!(
        "native: program {} MB, lookup file {} MB",
        program.len() >> 20,
        lookup.size() >> 20
    );
    let mut group = criterion.benchmark_group("native");
    group.throughput(criterion::Throughput::Elements(offsets.len() as u64));
    group.bench_function("64 frames, warm", |bencher| {
        bencher.iter(|| {
            for offset in &offsets {
                black_box(lookup.native(*offset));
            }
        });
    });
    group.finish();
    print_frame("native", offsets.len(), || {
        for offset in &offsets {
            black_box(lookup.native(black_box(*offset)));
        }
    });
    criterion.bench_function("open a native lookup file and look up a frame", |bencher| {
        bencher.iter(|| {
            let lookup = LookupFile::open(&path, LookupKind::Native).unwrap();
            black_box(lookup.native(offsets[0]))
        });
    });
}

fn java_script(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script");
    // Each place is 5 columns and one line further than the one before.
    let places = vec!["KACA"; 200_000].join(",");
    let map = format!(
        r#"{{"version":3,"debugId":"67e9247c-814e-392b-a027-dbde6748fcbf","sources":["a.js"],"names":[],"mappings":"AAAA,{places}"}}"#
    );
    converted(map.as_bytes(), &path);
    let lookup = LookupFile::open(&path, LookupKind::JavaScript).unwrap();
    assert!(lookup.java_script(1, 500_000, "a").is_some());
    criterion.bench_function("a frame of JavaScript, warm", |bencher| {
        bencher.iter(|| black_box(lookup.java_script(1, black_box(500_000), "a")));
    });
}

criterion_group!(benches, r8, native, java_script);
criterion_main!(benches);
