//! Makes every single disk operation of a small script fail: alone or together with the following ones, and writes after any part
//! of their bytes. Everything reported as durable is kept, and nothing that was given up is ever read.

use std::collections::BTreeMap;
use std::path::Path;

use crate::disk::fault::{self, Plan};
use crate::{AppendError, Log, Options, Seq, WhenFull};

/// What the caller of the log knows.
#[derive(Default)]
struct Caller {
    attempts: u8,
    /// Appended, and neither given up nor dropped.
    records: BTreeMap<Seq, Vec<u8>>,
    last_seq: Seq,
    durable: Seq,
    errors: usize,
}

impl Caller {
    fn payload(&mut self) -> Vec<u8> {
        self.attempts += 1;
        vec![self.attempts; 60]
    }

    fn append(&mut self, log: &mut Log, count: usize) {
        let payloads: Vec<_> = (0..count).map(|_| self.payload()).collect();
        let all = log.append_all(&payloads);
        assert_eq!(all.count == count, all.error.is_none());
        assert!(!matches!(
            all.error,
            Some(AppendError::Full { .. } | AppendError::TooLarge { .. })
        ));
        self.errors += usize::from(all.error.is_some());
        for (seq, payload) in (all.first_seq..).zip(payloads.into_iter().take(all.count)) {
            assert!(seq > self.last_seq, "a number was reused");
            self.last_seq = seq;
            self.records.insert(seq, payload);
        }
        self.drop_oldest(all.dropped.records, log.trimmer().trimmed());
    }

    fn append_one(&mut self, log: &mut Log) {
        let payload = self.payload();
        match log.append(&payload) {
            Ok(appended) => {
                assert!(appended.seq > self.last_seq);
                self.last_seq = appended.seq;
                self.drop_oldest(appended.dropped.records, log.trimmer().trimmed());
                self.records.insert(appended.seq, payload);
            }
            Err(_) => {
                self.errors += 1;
                // The next append would report these otherwise.
                let dropped = std::mem::take(&mut log.dropped);
                self.drop_oldest(dropped.records, log.trimmer().trimmed());
            }
        }
    }

    fn drop_oldest(&mut self, count: u64, trimmed: Seq) {
        let oldest: Vec<Seq> = self
            .records
            .range(trimmed + 1..)
            .take(usize::try_from(count).unwrap())
            .map(|(seq, _)| *seq)
            .collect();
        assert_eq!(oldest.len() as u64, count);
        for seq in oldest {
            self.records.remove(&seq);
        }
    }

    fn sync(&mut self, log: &mut Log) {
        match log.sync() {
            Ok(durable) => {
                assert!(self.records.keys().all(|seq| *seq <= durable));
                self.durable = durable;
            }
            Err(error) => {
                self.errors += 1;
                assert_eq!(error.durable, log.durable_seq());
                assert!(error.durable >= self.durable);
                let given_up = self.records.split_off(&(error.durable + 1));
                assert_eq!(given_up.len() as u64, error.lost_records);
                self.durable = error.durable;
            }
        }
        let seen = read_all(log);
        assert!(seen.iter().all(|(seq, payload)| {
            *seq <= self.durable && self.records.get(seq).is_none_or(|known| known == payload)
        }));
    }

    fn trim(&mut self, log: &Log, through: Seq) {
        self.errors += usize::from(log.trimmer().trim(through).is_err());
    }

    fn script(&mut self, log: &mut Log) {
        for _ in 0..3 {
            self.append_one(log);
        }
        self.sync(log);
        self.append(log, 9);
        self.sync(log);
        self.trim(log, 5);
        self.append(log, 6);
        self.append_one(log);
        self.sync(log);
        self.trim(log, self.durable);
        self.append_one(log);
        self.sync(log);
        self.append(log, 2);
        self.append_one(log);
    }
}

fn read_all(log: &Log) -> BTreeMap<Seq, Vec<u8>> {
    let mut reader = log.reader();
    let mut records = BTreeMap::new();
    while let Some(chunk) = reader.next_chunk(200).unwrap() {
        records.extend(
            chunk
                .iter()
                .map(|record| (record.seq, record.payload.to_vec())),
        );
    }
    records
}

fn options(dir: &Path, when_full: WhenFull) -> Options {
    let max_bytes = match when_full {
        WhenFull::Refuse => 100_000,
        WhenFull::DropOldest => 1500,
    };
    Options {
        segment_bytes: 400,
        max_record_bytes: 60,
        when_full,
        ..Options::new(dir, max_bytes)
    }
}

fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    dir.unwrap()
}

/// Runs the script on a disk that fails as planned and then works again.
fn fails_and_recovers(when_full: WhenFull, plan: Plan) -> Plan {
    let dir = folder();
    let what = format!("{when_full:?}, {plan:?}");
    let mut caller = Caller::default();
    let (opened, plan) = fault::with(plan, || {
        let (mut log, _) = Log::open(options(dir.path(), when_full)).ok()?;
        caller.script(&mut log);
        Some(log)
    });
    let mut log = opened.unwrap_or_else(|| Log::open(options(dir.path(), when_full)).unwrap().0);
    let errors = caller.errors;
    caller.append_one(&mut log);
    caller.append(&mut log, 5);
    caller.sync(&mut log);
    assert_eq!(
        caller.errors, errors,
        "{what}: the log should remain usable"
    );
    let trimmed = log.trimmer().trimmed();
    let expected = caller.records.split_off(&(trimmed + 1));
    assert_eq!(read_all(&log), expected, "{what}");
    drop(log);
    let (log, recovery) = Log::open(options(dir.path(), when_full)).unwrap();
    assert_eq!(recovery.torn_bytes, 0, "{what}");
    // If the hint could not be written, trimmed records are read again.
    let again = read_all(&log).split_off(&(trimmed + 1));
    assert_eq!(again, expected, "{what}, after reopening");
    assert!(recovery.next_seq > caller.last_seq);
    plan
}

/// Runs the script on a disk that fails as planned. Then the process dies.
fn fails_and_dies(when_full: WhenFull, plan: Plan) {
    let dir = folder();
    let what = format!("{when_full:?}, {plan:?}");
    let mut caller = Caller::default();
    let (trimmed, _) = fault::with(plan, || {
        let (mut log, _) = Log::open(options(dir.path(), when_full)).ok()?;
        caller.script(&mut log);
        Some(log.trimmer().trimmed())
    });
    let trimmed = trimmed.unwrap_or(0);
    let (log, _) = Log::open(options(dir.path(), when_full)).unwrap();
    let found = read_all(&log);
    for (seq, payload) in caller
        .records
        .range(trimmed + 1..=caller.durable.max(trimmed + 1))
    {
        assert!(
            *seq > caller.durable || found.get(seq) == Some(payload),
            "{what}: {seq}"
        );
    }
    for payload in found.values() {
        let attempt = payload.first().copied().unwrap_or_default();
        assert!(
            attempt > 0 && attempt <= caller.attempts && *payload == vec![attempt; 60],
            "{what}"
        );
    }
}

fn every_operation_fails(when_full: WhenFull) {
    let operations = fails_and_recovers(when_full, Plan::default()).tried;
    assert!(operations > 50, "{operations}");
    let mut failed = std::collections::BTreeSet::new();
    for from in 0..operations {
        for in_a_row in [1, 2, 3, 4, 5, 8, 1000] {
            for bytes in [0, 1, 20, 28, 50, 88, 100, 10_000] {
                let plan = || Plan {
                    from,
                    until: from + in_a_row,
                    bytes,
                    ..Plan::default()
                };
                failed.extend(fails_and_recovers(when_full, plan()).failed);
                fails_and_dies(when_full, plan());
            }
        }
    }
    let all = [
        "create",
        "cut",
        "hint",
        "remove",
        "sync",
        "sync folder",
        "write",
    ];
    assert_eq!(failed.into_iter().collect::<Vec<_>>(), all);
}

#[test]
fn a_log_that_rejects_when_full_survives_the_failure_of_any_operation() {
    every_operation_fails(WhenFull::Refuse);
}

#[test]
fn a_log_that_drops_the_oldest_survives_the_failure_of_any_operation() {
    every_operation_fails(WhenFull::DropOldest);
}

#[test]
fn a_full_disk_loses_only_the_record_being_appended() {
    let dir = folder();
    let (mut log, _) = Log::open(options(dir.path(), WhenFull::Refuse)).unwrap();
    log.append(b"before").unwrap();
    let full = Plan {
        from: 0,
        until: 1,
        bytes: 31,
        ..Plan::default()
    };
    let (refused, _) = fault::with(full, || log.append(b"does not fit").unwrap_err());
    assert!(matches!(
        refused,
        AppendError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull
    ));
    assert_eq!(log.append(b"after").unwrap().seq, 2);
    log.sync().unwrap();
    let expected = [(1, b"before".to_vec()), (2, b"after".to_vec())];
    assert_eq!(read_all(&log), expected.into());
}

#[test]
fn a_failed_sync_gives_up_unsynced_records_even_if_the_next_sync_succeeds() {
    let dir = folder();
    let (mut log, _) = Log::open(options(dir.path(), WhenFull::Refuse)).unwrap();
    log.append(b"durable").unwrap();
    log.sync().unwrap();
    log.append(b"lost").unwrap();
    let failing = Plan {
        from: 0,
        until: 1,
        ..Plan::default()
    };
    let (error, _) = fault::with(failing, || log.sync().unwrap_err());
    assert_eq!((error.lost_records, error.durable), (1, 1));
    assert_eq!((log.sync().unwrap(), log.segments()), (1, 2));
    assert_eq!(log.append(b"again").unwrap().seq, 3);
    log.sync().unwrap();
    let expected = BTreeMap::from([(1, b"durable".to_vec()), (3, b"again".to_vec())]);
    assert_eq!(read_all(&log), expected);
    drop(log);
    let (log, _) = Log::open(options(dir.path(), WhenFull::Refuse)).unwrap();
    assert_eq!(read_all(&log), expected);
}

#[test]
fn a_sync_covers_every_segment_written_since_the_last_one() {
    let dir = folder();
    let (mut log, _) = Log::open(options(dir.path(), WhenFull::Refuse)).unwrap();
    let mut syncs = |count: usize| {
        assert!(log.append_all(&vec![[1; 60]; count]).error.is_none());
        let (synced, plan) = fault::with(Plan::default(), || log.sync());
        synced.unwrap();
        (log.segments(), plan.tried)
    };
    // A segment holds four records.
    assert_eq!(syncs(10), (3, 3));
    assert_eq!(syncs(0), (3, 0));
    assert_eq!(syncs(1), (3, 1));
    assert_eq!(syncs(2), (4, 2));
}

#[test]
fn records_dropped_for_a_failed_append_are_reported_with_the_next() {
    let dir = folder();
    let (mut log, _) = Log::open(options(dir.path(), WhenFull::DropOldest)).unwrap();
    let mut reported = 0;
    let mut appended = 0;
    for _ in 0..100 {
        for from in 0..8 {
            let plan = Plan {
                from,
                until: from + 1,
                ..Plan::default()
            };
            if let (Ok(done), _) = fault::with(plan, || log.append(&[1; 60])) {
                reported += done.dropped.records;
                appended += 1;
            }
        }
    }
    log.sync().unwrap();
    assert_eq!(
        read_all(&log).len() as u64,
        appended - reported - log.dropped.records
    );
}

#[test]
fn remains_of_a_failed_write_are_never_read() {
    // Once with the following truncation succeeding, once with it failing as well.
    for until in [1, 2] {
        let dir = folder();
        let (mut log, _) = Log::open(options(dir.path(), WhenFull::Refuse)).unwrap();
        log.append(b"before").unwrap();
        let plan = Plan {
            from: 0,
            until,
            bytes: 10_000,
            ..Plan::default()
        };
        let (all, plan) = fault::with(plan, || log.append_all(&[[1; 8]; 5]));
        assert_eq!((all.count, plan.failed.len()), (0, until));
        assert_eq!(log.append(b"as long!").unwrap().seq, 2);
        log.sync().unwrap();
        drop(log);
        let (log, recovery) = Log::open(options(dir.path(), WhenFull::Refuse)).unwrap();
        assert_eq!((recovery.records, recovery.torn_bytes), (2, 0));
        assert_eq!(read_all(&log)[&2], b"as long!");
    }
}
