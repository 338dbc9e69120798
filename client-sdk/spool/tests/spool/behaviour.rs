//! The guarantees of the documentation, one per test.

use std::fs;

use unjank_spool::{AppendError, Log, OpenError, Options, Recovery, WhenFull};

use crate::folder::{Folder, HEADER, RECORD, payload, read_all};

#[test]
fn a_new_log_is_empty_and_starts_at_one() {
    let folder = Folder::new();
    let (log, recovery) = folder.open();
    assert_eq!(
        recovery,
        Recovery {
            first_seq: 1,
            next_seq: 1,
            ..Recovery::default()
        }
    );
    assert_eq!(
        (log.oldest_seq(), log.next_seq(), log.durable_seq()),
        (1, 1, 0)
    );
    assert!(log.reader().next_chunk(1000).unwrap().is_none());
}

#[test]
fn readers_see_only_synced_records_which_survive_reopening() {
    let folder = Folder::new();
    let (mut log, _) = folder.open();
    let mut reader = log.reader();
    for seq in 1..=20 {
        assert_eq!(log.append(&payload(seq, 70)).unwrap().seq, seq);
        assert!(reader.next_chunk(1000).unwrap().is_none());
    }
    assert_eq!(log.sync().unwrap(), 20);
    let expected: Vec<_> = (1..=20).map(|seq| (seq, payload(seq, 70))).collect();
    assert_eq!(read_all(&log), expected);
    assert_eq!(reader.next_chunk(1).unwrap().unwrap().last_seq(), Some(1));
    drop(log);
    let (log, recovery) = folder.open();
    assert_eq!(
        (recovery.records, recovery.bytes, recovery.torn_bytes),
        (20, 1400, 0)
    );
    assert_eq!((recovery.first_seq, recovery.next_seq), (1, 21));
    assert_eq!(read_all(&log), expected);
}

#[test]
fn many_records_are_appended_across_segments_at_once() {
    let folder = Folder::new();
    let (mut log, _) = folder.open();
    let payloads: Vec<_> = (1..=50).map(|seq| payload(seq, 60)).collect();
    let all = log.append_all(&payloads);
    assert_eq!((all.first_seq, all.count), (1, 50));
    assert!(all.error.is_none() && log.segments() > 10);
    log.sync().unwrap();
    let expected: Vec<_> = (1..=50).zip(payloads).collect();
    assert_eq!(read_all(&log), expected);
}

#[test]
fn a_second_log_in_the_same_folder_is_rejected() {
    let folder = Folder::new();
    let (log, _) = folder.open();
    let refused = Log::open(folder.options()).unwrap_err();
    assert!(
        matches!(&refused, OpenError::InUse { dir } if dir == folder.path()),
        "{refused}"
    );
    drop(log);
    folder.open();
}

#[test]
fn a_full_log_rejects_at_once_and_accepts_records_again_after_a_trim() {
    let folder = Folder::new();
    let options = Options {
        max_bytes: 1600,
        ..folder.options()
    };
    let (mut log, _) = Log::open(options).unwrap();
    let all = log.append_all(&vec![payload(1, 90); 100]);
    assert!(matches!(
        all.error,
        Some(AppendError::Full {
            max_bytes: 1600,
            ..
        })
    ));
    let before = folder.segments();
    let bytes = log.bytes();
    assert!(matches!(
        log.append(&[0; 90]),
        Err(AppendError::Full { .. })
    ));
    assert_eq!((folder.segments(), log.bytes()), (before, bytes));
    // A smaller record may still fit, because the limit is in bytes.
    let durable = log.sync().unwrap();
    log.trimmer().trim(durable).unwrap();
    assert_eq!(log.append(&[0; 90]).unwrap().seq, durable + 1);
    assert!(log.bytes() < 400);
}

#[test]
fn a_log_that_drops_the_oldest_stays_under_its_limit_and_counts_dropped_records() {
    let folder = Folder::new();
    let options = Options {
        max_bytes: 1600,
        when_full: WhenFull::DropOldest,
        ..folder.options()
    };
    let (mut log, _) = Log::open(options).unwrap();
    let mut dropped = 0;
    for seq in 1..=200 {
        let appended = log.append(&payload(seq, 90)).unwrap();
        assert_eq!(appended.seq, seq);
        dropped += appended.dropped.records;
        assert!(log.bytes() <= 1600);
    }
    log.sync().unwrap();
    let left = read_all(&log);
    assert_eq!(left.len() as u64 + dropped, 200);
    assert_eq!(left[0].0, dropped + 1);
    assert_eq!(log.oldest_seq(), dropped + 1);
    let sizes = folder
        .segments()
        .iter()
        .map(|path| fs::metadata(path).unwrap().len())
        .sum();
    assert_eq!(log.bytes(), sizes);
}

#[test]
fn a_record_that_is_too_large_is_rejected_and_those_before_it_are_kept() {
    let folder = Folder::new();
    let (mut log, _) = folder.open();
    let all = log.append_all(&[vec![1; 10], vec![2; 101], vec![3; 10]]);
    assert_eq!(all.count, 1);
    assert!(matches!(
        all.error,
        Some(AppendError::TooLarge {
            bytes: 101,
            limit: RECORD
        })
    ));
    assert_eq!(log.append(&[3; 10]).unwrap().seq, 2);
    log.sync().unwrap();
    assert_eq!(read_all(&log), [(1, vec![1; 10]), (2, vec![3; 10])]);
}

#[test]
fn trimming_deletes_whole_segments_and_is_remembered() {
    let folder = Folder::new();
    let (mut log, _) = folder.open();
    let payloads: Vec<_> = (1..=30).map(|seq| payload(seq, 90)).collect();
    assert!(log.append_all(&payloads).error.is_none());
    log.sync().unwrap();
    let (before, trimmer) = (log.segments(), log.trimmer());
    trimmer.trim(0).unwrap();
    assert_eq!(log.segments(), before);
    trimmer.trim(17).unwrap();
    assert!(log.segments() < before);
    assert_eq!((log.oldest_seq(), trimmer.trimmed()), (18, 17));
    trimmer.trim(5).unwrap();
    assert_eq!(trimmer.trimmed(), 17);
    drop(log);
    assert!(
        trimmer.trim(20).is_err(),
        "another log may use the folder now"
    );
    let (log, recovery) = folder.open();
    assert_eq!(
        (recovery.records, recovery.first_seq, recovery.next_seq),
        (13, 18, 31)
    );
    assert_eq!(read_all(&log)[0].0, 18);
}

#[test]
fn a_lost_hint_causes_rereading_and_never_skipping() {
    let folder = Folder::new();
    let (mut log, _) = folder.open();
    assert!(log.append_all(&[[1; 10], [2; 10]]).error.is_none());
    log.sync().unwrap();
    log.trimmer().trim(1).unwrap();
    drop(log);
    let hint = folder.path().join("trimmed");
    let good = fs::read(&hint).unwrap();
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        fs::write(&hint, bad).unwrap();
        assert_eq!(folder.open().1.records, 2);
    }
    fs::write(&hint, &good[..good.len() - 1]).unwrap();
    assert_eq!(folder.open().1.records, 2);
    fs::write(&hint, good).unwrap();
    assert_eq!(folder.open().1.records, 1);
}

#[test]
fn numbers_are_never_reused_even_if_everything_was_trimmed() {
    let folder = Folder::new();
    for round in 0..10 {
        let (mut log, recovery) = folder.open();
        assert_eq!((recovery.next_seq, recovery.records), (round * 7 + 1, 0));
        for seq in recovery.next_seq..recovery.next_seq + 7 {
            assert_eq!(log.append(&[9; 90]).unwrap().seq, seq);
        }
        let durable = log.sync().unwrap();
        log.trimmer().trim(durable).unwrap();
        assert_eq!(log.segments(), 1);
    }
}

#[test]
fn a_reader_starts_at_the_given_number() {
    let folder = Folder::new();
    let (mut log, _) = folder.open();
    let payloads: Vec<_> = (1..=30).map(|seq| payload(seq, 50)).collect();
    assert!(log.append_all(&payloads).error.is_none());
    log.sync().unwrap();
    for seq in 1..=30 {
        let mut reader = log.reader_at(seq);
        let chunk = reader.next_chunk(1000).unwrap().unwrap();
        let record = chunk.iter().next().unwrap();
        assert_eq!(
            (record.seq, record.payload),
            (seq, payload(seq, 50).as_slice())
        );
        reader.seek(3);
        assert_eq!(reader.next_chunk(1).unwrap().unwrap().first_seq(), Some(3));
    }
    let mut reader = log.reader_at(32);
    assert!(reader.next_chunk(1000).unwrap().is_none());
    assert!(log.append_all(&[[1; 5], [2; 5], [3; 5]]).error.is_none());
    log.sync().unwrap();
    let (bytes, records) = reader.next_chunk(1000).unwrap().unwrap().into_parts();
    let records: Vec<_> = records
        .into_iter()
        .map(|(seq, range)| (seq, bytes[range].to_vec()))
        .collect();
    assert_eq!(records, [(32, vec![2; 5]), (33, vec![3; 5])]);
}

#[test]
fn foreign_files_are_left_alone() {
    let folder = Folder::new();
    fs::create_dir(folder.path().join("0000000000000001-00000001.segment")).unwrap();
    for name in ["notes.txt", "0000000000000001.segment", "1-1.segment"] {
        fs::write(folder.path().join(name), "mine").unwrap();
    }
    let (mut log, _) = folder.open();
    log.append(b"x").unwrap();
    let durable = log.sync().unwrap();
    log.trimmer().trim(durable).unwrap();
    drop(log);
    folder.open();
    for name in ["notes.txt", "0000000000000001.segment", "1-1.segment"] {
        assert_eq!(
            fs::read_to_string(folder.path().join(name)).unwrap(),
            "mine"
        );
    }
}

#[test]
fn a_newer_format_is_rejected_and_not_touched() {
    let folder = Folder::new();
    drop(folder.open());
    let path = folder.segments().remove(0);
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] = 2;
    let checksum = crc32c::crc32c(&bytes[..HEADER - 4]).to_le_bytes();
    bytes[HEADER - 4..].copy_from_slice(&checksum);
    fs::write(&path, &bytes).unwrap();
    let refused = Log::open(folder.options()).unwrap_err();
    assert!(
        matches!(refused, OpenError::Version { version: 2, .. }),
        "{refused}"
    );
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn inconsistent_options_are_rejected_with_advice() {
    let folder = Folder::new();
    let advice = |options: Options| Log::open(options).unwrap_err().to_string();
    assert_eq!(
        advice(Options {
            segment_bytes: 155,
            ..folder.options()
        }),
        "the log's options are inconsistent: \
         segment_bytes is 155, but a record of max_record_bytes needs 156"
    );
    assert_eq!(
        advice(Options {
            max_bytes: 623,
            ..folder.options()
        }),
        "the log's options are inconsistent: max_bytes is 623, but has to hold four segments of \
         at least 156 bytes each: raise it or lower max_record_bytes"
    );
    assert!(
        advice(Options {
            max_record_bytes: u32::MAX,
            ..folder.options()
        })
        .contains("at most")
    );
}

#[test]
fn a_log_trimmed_after_every_record_does_not_start_a_segment_for_each() {
    let folder = Folder::new();
    let options = Options {
        segment_bytes: 10_000,
        ..folder.options()
    };
    let (mut log, _) = Log::open(options).unwrap();
    let trimmer = log.trimmer();
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..1000 {
        log.append(&[1; 72]).unwrap();
        trimmer.trim(log.sync().unwrap()).unwrap();
        assert!(
            log.bytes() <= 2600,
            "space of finished records should be released"
        );
        names.extend(folder.segments());
    }
    assert!(names.len() <= 41, "{}", names.len());
}
