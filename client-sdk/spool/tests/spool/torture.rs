//! Damages every byte of a small log in every way that occurs in practice. Everything the damage did not touch is read with the
//! same content and number, and nothing else is.

use std::fs;
use std::ops::Range;
use std::path::Path;

use crate::folder::{Folder, HEADER, Records, payload, read_all};

/// A record and the position of its bytes.
struct Place {
    segment: usize,
    bytes: Range<usize>,
    record: (u64, Vec<u8>),
}

/// Creates and closes a log of several segments. Returns the positions of its records.
fn small_log() -> (Folder, Vec<Place>) {
    let folder = Folder::new();
    let (mut log, _) = folder.open();
    let mut places: Vec<Place> = Vec::new();
    for seq in 1..=14 {
        let content = payload(seq, [0, 1, 33, 100, 7][usize::try_from(seq % 5).unwrap()]);
        log.append(&content).unwrap();
        let segment = log.segments() - 1;
        let begin = match places.last() {
            Some(last) if last.segment == segment => last.bytes.end,
            _ => HEADER,
        };
        let bytes = begin..begin + HEADER + content.len();
        places.push(Place {
            segment,
            bytes,
            record: (seq, content),
        });
    }
    log.sync().unwrap();
    assert!(log.segments() >= 3);
    (folder, places)
}

/// Opens a damaged log. Checks that exactly `expected` is read, that records can be appended, and that all of them are there
/// after another restart.
fn check(folder: &Folder, mut expected: Records, what: &str) {
    let (mut log, recovery) = folder.open();
    assert_eq!(read_all(&log), expected, "{what}");
    assert_eq!(recovery.records, expected.len() as u64, "{what}");
    let last = expected.last().map_or(0, |(seq, _)| *seq);
    for _ in 0..2 {
        let seq = log.append(b"after").unwrap().seq;
        assert!(seq > last, "{what}");
        expected.push((seq, b"after".to_vec()));
    }
    log.sync().unwrap();
    assert_eq!(read_all(&log), expected, "{what}");
    drop(log);
    let (log, recovery) = folder.open();
    assert_eq!(
        recovery.torn_bytes, 0,
        "{what}: truncated bytes should not reappear"
    );
    assert_eq!(read_all(&log), expected, "{what}");
}

fn survivors(places: &[Place], survives: impl Fn(&Place) -> bool) -> Records {
    places
        .iter()
        .filter(|place| survives(place))
        .map(|place| place.record.clone())
        .collect()
}

fn damage(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_log_truncated_at_any_byte_keeps_every_record_before_it_and_in_other_segments() {
    let (original, places) = small_log();
    for (segment, path) in original.segments().iter().enumerate() {
        for cut in 0..fs::read(path).unwrap().len() {
            let folder = original.copy();
            damage(&folder.segments()[segment], |bytes| bytes.truncate(cut));
            let expected = survivors(&places, |place| {
                place.segment != segment || place.bytes.end <= cut
            });
            check(
                &folder,
                expected,
                &format!("segment {segment} cut at {cut}"),
            );
        }
    }
}

#[test]
fn a_log_with_any_byte_changed_loses_at_most_the_record_it_belongs_to() {
    let (original, places) = small_log();
    for (segment, path) in original.segments().iter().enumerate() {
        for (at, byte) in fs::read(path).unwrap().into_iter().enumerate() {
            let expected = survivors(&places, |place| {
                place.segment != segment || !place.bytes.contains(&at)
            });
            let patterns = [byte ^ 0x01, byte ^ 0x80, byte ^ 0xff, 0x00];
            for pattern in patterns.into_iter().filter(|pattern| *pattern != byte) {
                let folder = original.copy();
                damage(&folder.segments()[segment], |bytes| bytes[at] = pattern);
                let what = format!("segment {segment}, byte {at} is {pattern:#x}");
                let (log, recovery) = folder.open();
                assert!(
                    recovery.torn_bytes > 0 || !recovery.damaged.is_empty(),
                    "{what}"
                );
                let mut damaged = recovery.damaged.iter();
                assert!(damaged.all(|one| path.ends_with(&one.segment)), "{what}");
                drop(log);
                check(&folder, expected.clone(), &what);
            }
        }
    }
}

#[test]
fn zeros_anywhere_lose_only_the_records_they_touch() {
    let (original, places) = small_log();
    for (segment, path) in original.segments().iter().enumerate() {
        let length = fs::read(path).unwrap().len();
        for begin in (0..length).step_by(5) {
            let gone = begin..length.min(begin + 70);
            let folder = original.copy();
            damage(&folder.segments()[segment], |bytes| {
                bytes[gone.clone()].fill(0);
            });
            let expected = survivors(&places, |place| {
                place.segment != segment
                    || place.bytes.end <= gone.start
                    || place.bytes.start >= gone.end
            });
            check(
                &folder,
                expected,
                &format!("segment {segment}, zeros in {gone:?}"),
            );
        }
    }
}

#[test]
fn anything_after_the_last_record_is_truncated() {
    let (original, places) = small_log();
    let last = original.segments().len() - 1;
    for length in (1..200).chain([5000, 3_000_000]) {
        for filler in [0x00, 0xf5, 0xff] {
            let folder = original.copy();
            let path = &folder.segments()[last];
            let whole = fs::metadata(path).unwrap().len();
            damage(path, |bytes| bytes.resize(bytes.len() + length, filler));
            let (log, recovery) = folder.open();
            assert_eq!(recovery.torn_bytes, length as u64);
            assert_eq!(fs::metadata(path).unwrap().len(), whole);
            drop(log);
            check(
                &folder,
                survivors(&places, |_| true),
                &format!("{length} times {filler}"),
            );
        }
    }
}

#[test]
fn a_payload_that_quotes_a_log_is_never_read_as_one() {
    let (original, _) = small_log();
    let quoted = fs::read(&original.segments()[0]).unwrap();
    let folder = Folder::new();
    let (mut log, _) = folder.open();
    let first = log.append(b"first").unwrap().seq;
    log.append(&quoted[HEADER..HEADER + 100]).unwrap();
    let last = log.append(b"last").unwrap().seq;
    log.sync().unwrap();
    drop(log);
    let expected = vec![(first, b"first".to_vec()), (last, b"last".to_vec())];
    // Without the header of the quoting record, its payload is scanned for records.
    damage(&folder.segments()[0], |bytes| {
        bytes[HEADER * 2 + 5 + 3] ^= 1;
    });
    check(&folder, expected, "a quoted record");
}

#[test]
fn a_duplicate_record_is_read_once() {
    let (original, places) = small_log();
    let segments = original.segments();
    let last = segments.len() - 1;
    let repeated = places.iter().find(|place| place.segment == last).unwrap();
    let folder = original.copy();
    damage(&folder.segments()[last], |bytes| {
        bytes.extend_from_within(repeated.bytes.clone());
    });
    check(&folder, survivors(&places, |_| true), "a repeated record");
}

#[test]
fn the_number_of_a_torn_record_is_skipped_between_segments() {
    let (original, places) = small_log();
    let last = original.segments().len() - 1;
    damage(&original.segments()[last], |bytes| {
        bytes.truncate(bytes.len() - 1);
    });
    let (mut log, recovery) = original.open();
    let torn = places.last().unwrap().record.0;
    assert!(!recovery.torn_has_whole_record);
    assert_eq!((recovery.next_seq, log.segments()), (torn + 1, last + 2));
    assert_eq!(log.append(b"next").unwrap().seq, torn + 1);
}

#[test]
fn numbers_are_not_reused_even_if_all_segments_are_gone() {
    let (folder, _) = small_log();
    let (log, recovery) = folder.open();
    log.trimmer().trim(recovery.next_seq - 1).unwrap();
    drop(log);
    folder
        .segments()
        .iter()
        .for_each(|path| fs::remove_file(path).unwrap());
    assert_eq!(folder.open().1.next_seq, recovery.next_seq);
}
