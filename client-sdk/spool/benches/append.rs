//! How many records of 16 KiB become durable per second, and how fast they are read back.
//!
//! Runs in the folder for temporary files, so set `TMPDIR` to a folder on the disk to measure.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot write fails")]

use std::hint::black_box;
use std::io::Write;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tempfile::TempDir;
use unjank_spool::{Chunk, Log, Options};

const RECORD: usize = 16 << 10;
const MAX_BYTES: u64 = 2 << 30;

fn open() -> (TempDir, Log) {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = Log::open(Options::new(dir.path(), MAX_BYTES)).unwrap();
    (dir, log)
}

/// Appends until `groups` groups are durable, and trims like a consumer that keeps up.
fn append(groups: u64, one_group: impl Fn(&mut Log)) -> Duration {
    let (_dir, mut log) = open();
    let trimmer = log.trimmer();
    let start = Instant::now();
    for group in 0..groups {
        one_group(&mut log);
        let durable = log.sync().unwrap();
        if group % 1024 == 1023 {
            trimmer.trim(durable).unwrap();
        }
    }
    start.elapsed()
}

fn append_each(log: &mut Log, payloads: &[&[u8]]) {
    for payload in payloads {
        log.append(payload).unwrap();
    }
}

/// Measures what the disk can do, as the baseline.
fn write_by_hand(groups: u64, payloads: &[u8]) -> Duration {
    let mut file = tempfile::tempfile().unwrap();
    let start = Instant::now();
    for group in 0..groups {
        if group % 256 == 255 {
            file = tempfile::tempfile().unwrap();
        }
        file.write_all(payloads).unwrap();
        file.sync_data().unwrap();
    }
    start.elapsed()
}

fn appending(criterion: &mut Criterion) {
    let payload: Vec<u8> = (0..RECORD).map(|at| (at * 31 % 251) as u8).collect();
    let mut group = criterion.benchmark_group("append 16 KiB");
    group.throughput(Throughput::Elements(1));
    group.bench_function("sync each", |bencher| {
        bencher.iter_custom(|groups| {
            append(groups, |log| {
                log.append(&payload).unwrap();
            })
        });
    });
    group.throughput(Throughput::Elements(16));
    let payloads = [payload.as_slice(); 16];
    group.bench_function("sync per 16", |bencher| {
        bencher.iter_custom(|groups| append(groups, |log| append_each(log, &payloads)));
    });
    group.bench_function("sync per 16, appended at once", |bencher| {
        bencher.iter_custom(|groups| {
            append(groups, |log| {
                let all = log.append_all(&payloads);
                assert!(all.error.is_none());
            })
        });
    });
    let payloads = payloads.concat();
    group.bench_function("sync per 16, by hand without a log", |bencher| {
        bencher.iter_custom(|groups| write_by_hand(groups, &payloads));
    });
    group.finish();
}

fn reading(criterion: &mut Criterion) {
    let (_dir, mut log) = open();
    for _ in 0..(256 << 20) / RECORD {
        log.append(&[7; RECORD]).unwrap();
    }
    log.sync().unwrap();
    let mut reader = log.reader();
    let mut chunk = Chunk::default();
    let mut group = criterion.benchmark_group("read 16 KiB");
    group.throughput(Throughput::Bytes(1 << 20));
    group.bench_function("in chunks of 1 MiB", |bencher| {
        bencher.iter(|| {
            if !reader.read_into(&mut chunk, 1 << 20).unwrap() {
                reader.seek(0);
            }
            black_box(chunk.len())
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(8));
    targets = appending, reading
}
criterion_main!(benches);
