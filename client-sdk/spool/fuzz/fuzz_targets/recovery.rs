//! Opens arbitrary folders. Run with `cargo +nightly fuzz run recovery` in `client-sdk/spool`.
//!
//! The input is a small program that builds segments from raw bytes and from records with valid checksums, so that the fuzzer
//! gets past the checksums. The format is deliberately implemented a second time here.
#![no_main]

use std::fs;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use unjank_spool::{Log, OpenError, Options, Recovery, Seq};

fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = crc32c::crc32c(&bytes).to_le_bytes();
    bytes.extend(checksum);
    bytes
}

fn segment_header(version: u32, tag: u32, first_seq: u64) -> Vec<u8> {
    let fields = [
        &b"uj-spool"[..],
        &version.to_le_bytes(),
        &tag.to_le_bytes(),
        &first_seq.to_le_bytes(),
    ];
    seal(fields.concat())
}

fn record_header(tag: u32, seq: u64, length: u32, checksum: u32) -> Vec<u8> {
    let fields = [
        &[0xf5, b'R', b'e', b'c'][..],
        &tag.to_le_bytes(),
        &seq.to_le_bytes(),
        &length.to_le_bytes(),
        &checksum.to_le_bytes(),
    ];
    seal(fields.concat())
}

struct Program<'a>(&'a [u8]);

impl<'a> Program<'a> {
    fn byte(&mut self) -> u8 {
        let Some((byte, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *byte
    }

    fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    fn word(&mut self) -> u64 {
        let mut word = [0; 8];
        let bytes = self.bytes(8);
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    }

    fn write_folder(&mut self, dir: &Path) {
        let mut seq = 1_u64;
        for _ in 0..=self.byte() % 4 {
            let tag = u32::from(self.byte() % 3);
            seq = match self.byte() {
                0 => self.word(),
                ahead => seq.wrapping_add(u64::from(ahead % 4)),
            };
            let name = format!("{seq:016x}-{tag:08x}.segment");
            let content = self.segment(tag, &mut seq);
            fs::write(dir.join(name), content).unwrap();
        }
    }

    fn segment(&mut self, tag: u32, seq: &mut u64) -> Vec<u8> {
        let mut content = Vec::new();
        let first_seq = *seq;
        while !self.0.is_empty() {
            match self.byte() {
                0 => break,
                1 => content.extend(segment_header(1, tag, first_seq)),
                2 => content.extend(segment_header(u32::from(self.byte()), tag, self.word())),
                // Usually a valid record.
                3..=120 => {
                    let length = usize::from(self.byte() % 40);
                    let payload = self.bytes(length);
                    let length = payload.len() as u32;
                    content.extend(record_header(tag, *seq, length, crc32c::crc32c(payload)));
                    content.extend(payload);
                    *seq = seq.wrapping_add(1);
                }
                // An arbitrary header with a valid checksum.
                121..=140 => {
                    let (seq, length) = (self.word(), self.word() as u32);
                    content.extend(record_header(tag, seq, length, 0));
                }
                141..=150 => *seq = self.word(),
                151..=170 => {
                    let keep = content.len() * usize::from(self.byte()) / 256;
                    content.truncate(keep);
                }
                171..=190 => {
                    let at = usize::from(self.byte()) * content.len() / 256;
                    let bits = self.byte();
                    content
                        .iter_mut()
                        .skip(at)
                        .take(1)
                        .for_each(|byte| *byte ^= bits);
                }
                191..=200 => content.resize(content.len() + usize::from(self.byte()) * 16, 0),
                _ => {
                    let length = usize::from(self.byte());
                    content.extend(self.bytes(length));
                }
            }
        }
        content
    }
}

fn read_all(log: &Log, max_bytes: usize) -> Vec<(Seq, Vec<u8>)> {
    let mut reader = log.reader();
    let mut records = Vec::new();
    while let Some(chunk) = reader.next_chunk(max_bytes).unwrap() {
        assert!(
            !chunk.is_empty() || !chunk.damage().is_empty(),
            "no progress"
        );
        records.extend(
            chunk
                .iter()
                .map(|record| (record.seq, record.payload.to_vec())),
        );
    }
    assert!(records.is_sorted_by(|(before, _), (after, _)| before < after));
    records
}

fn open(dir: &Path) -> Option<(Log, Recovery)> {
    let options = Options {
        segment_bytes: 600,
        max_record_bytes: 100,
        ..Options::new(dir, 1 << 30)
    };
    match Log::open(options) {
        Ok(opened) => Some(opened),
        Err(OpenError::Version { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

fuzz_target!(|data: &[u8]| {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    let folder = folder.unwrap();
    let mut program = Program(data);
    let max_bytes = usize::from(program.byte());
    program.write_folder(folder.path());

    let Some((mut log, recovery)) = open(folder.path()) else {
        return;
    };
    let mut records = read_all(&log, max_bytes);
    assert_eq!(recovery.records, records.len() as u64);
    assert_eq!(
        recovery.first_seq,
        records.first().map_or(recovery.next_seq, |(seq, _)| *seq)
    );
    assert_eq!(
        records,
        read_all(&log, 1 << 20),
        "chunk sizes should not matter"
    );

    for content in [&b"one"[..], b"", &[0xf5; 100]] {
        let seq = log.append(content).unwrap().seq;
        assert!(records.last().is_none_or(|(last, _)| seq > *last));
        records.push((seq, content.to_vec()));
    }
    let durable = log.sync().unwrap();
    assert_eq!(read_all(&log, max_bytes), records);
    drop(log);

    let (log, recovery) = open(folder.path()).expect("the log should open again");
    assert_eq!((recovery.torn_bytes, recovery.next_seq), (0, durable + 1));
    assert_eq!(read_all(&log, max_bytes), records);
    log.trimmer().trim(durable - 1).unwrap();
    assert_eq!(read_all(&log, max_bytes), records[records.len() - 1..]);
    assert!(log.segments() <= 2);
});
