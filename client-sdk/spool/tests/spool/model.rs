//! Random operations, compared with a model that is a list in memory.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::path::PathBuf;

use proptest::prelude::*;
use unjank_spool::{AppendError, Log, Options, Reader, Recovery, Seq, WhenFull};

use crate::folder::{Folder, payload, read_all};

#[derive(Debug, Clone)]
enum Step {
    Append {
        length: usize,
    },
    AppendAll {
        lengths: Vec<usize>,
    },
    Sync,
    /// Up to this fraction (in 256ths) of the records.
    Trim {
        part: u8,
    },
    Read {
        max_bytes: usize,
    },
    /// The process ends without a sync; the files stay as written.
    Reopen,
    /// The power fails: of the unsynced data, any prefix of each file remains.
    PowerCut {
        parts: Vec<u8>,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let length = 0..=100_usize;
    let step = prop_oneof![
        6 => length.clone().prop_map(|length| Step::Append { length }),
        3 => prop::collection::vec(length, 0..12).prop_map(|lengths| Step::AppendAll { lengths }),
        4 => Just(Step::Sync),
        2 => any::<u8>().prop_map(|part| Step::Trim { part }),
        4 => (0..1000_usize).prop_map(|max_bytes| Step::Read { max_bytes }),
        1 => Just(Step::Reopen),
        1 => prop::collection::vec(any::<u8>(), 8).prop_map(|parts| Step::PowerCut { parts }),
    ];
    prop::collection::vec(step, 1..80)
}

struct Model {
    folder: Folder,
    options: Options,
    log: Option<Log>,
    reader: Option<Reader>,
    /// The last number that the reader returned.
    read: Seq,
    /// Records that were appended and neither trimmed nor dropped.
    records: BTreeMap<Seq, Vec<u8>>,
    durable: Seq,
    trimmed: Seq,
    next_seq: Seq,
    /// The length of each segment at the last sync.
    synced: BTreeMap<PathBuf, u64>,
    power_was_cut: bool,
}

impl Model {
    fn new(when_full: WhenFull) -> Self {
        let folder = Folder::new();
        let options = Options {
            max_bytes: 2400,
            when_full,
            ..folder.options()
        };
        let mut model = Self {
            folder,
            options,
            log: None,
            reader: None,
            read: 0,
            records: BTreeMap::new(),
            durable: 0,
            trimmed: 0,
            next_seq: 1,
            synced: BTreeMap::new(),
            power_was_cut: false,
        };
        model.open();
        model
    }

    fn log(&mut self) -> &mut Log {
        self.log.as_mut().unwrap()
    }

    fn open(&mut self) -> Recovery {
        let (log, recovery) = Log::open(self.options.clone()).unwrap();
        self.reader = Some(log.reader());
        self.log = Some(log);
        self.read = 0;
        recovery
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Append { length } => self.append(&[*length]),
            Step::AppendAll { lengths } => self.append(lengths),
            Step::Sync => self.sync(),
            Step::Trim { part } => self.trim(*part),
            Step::Read { max_bytes } => self.read(*max_bytes),
            Step::Reopen => self.restart(None),
            Step::PowerCut { parts } => self.restart(Some(parts)),
        }
        let log = self.log();
        assert!(log.bytes() <= log_limit());
        let (bytes, next_seq, durable) = (log.bytes(), log.next_seq(), log.durable_seq());
        assert_eq!(bytes, self.sizes().values().sum::<u64>());
        assert_eq!((next_seq, durable), (self.next_seq, self.durable));
    }

    fn sizes(&self) -> BTreeMap<PathBuf, u64> {
        let paths = self.folder.segments().into_iter();
        paths
            .map(|path| (path.clone(), fs::metadata(path).unwrap().len()))
            .collect()
    }

    fn append(&mut self, lengths: &[usize]) {
        let next_seq = self.next_seq;
        let payloads: Vec<_> = (next_seq..)
            .zip(lengths)
            .map(|(seq, length)| payload(seq, *length))
            .collect();
        let refuses = self.options.when_full == WhenFull::Refuse;
        let all = self.log().append_all(&payloads);
        assert_eq!(all.first_seq, next_seq);
        match all.error {
            None => assert_eq!(all.count, payloads.len()),
            Some(AppendError::Full { .. }) => assert!(refuses),
            Some(error) => panic!("{error}"),
        }
        self.records
            .extend((next_seq..).zip(payloads.into_iter().take(all.count)));
        self.next_seq += all.count as u64;
        for _ in 0..all.dropped.records {
            assert!(!refuses);
            self.records.pop_first().unwrap();
        }
    }

    fn sync(&mut self) {
        let before = self.durable;
        self.durable = self.log().sync().unwrap();
        assert!(self.durable >= before);
        if let Some(last) = self.records.keys().last() {
            assert!(self.durable >= *last);
        }
        self.synced = self.sizes();
        let expected: Vec<_> = self.records.clone().into_iter().collect();
        assert_eq!(read_all(self.log()), expected);
    }

    fn trim(&mut self, part: u8) {
        let through = self.trimmed + (self.next_seq - self.trimmed) * u64::from(part) / 256;
        self.log().trimmer().trim(through).unwrap();
        self.trimmed = self.trimmed.max(through.min(self.durable));
        self.records = self.records.split_off(&(self.trimmed + 1));
    }

    /// Reads with a long-lived reader. What it returns is correct, and what it skips no longer exists.
    fn read(&mut self, max_bytes: usize) {
        let Some(chunk) = self.reader.as_mut().unwrap().next_chunk(max_bytes).unwrap() else {
            let unread = self
                .records
                .range(self.read + 1..)
                .next()
                .map(|(seq, _)| *seq);
            assert!(
                unread.is_none_or(|seq| seq > self.durable),
                "{unread:?} was skipped"
            );
            return;
        };
        // A power cut can truncate an older segment inside a record.
        assert!(!chunk.is_empty() || !chunk.damage().is_empty());
        assert!(chunk.damage().is_empty() || self.power_was_cut);
        for record in chunk.iter() {
            assert!(record.seq > self.read && record.seq <= self.durable);
            assert_eq!(self.records.range(self.read + 1..record.seq).next(), None);
            assert_eq!(record.payload, payload(record.seq, record.payload.len()));
            if let Some(content) = self.records.get(&record.seq) {
                assert_eq!(record.payload, content);
            }
            self.read = record.seq;
        }
    }

    fn restart(&mut self, power_cut: Option<&[u8]>) {
        self.reader = None;
        self.log = None;
        self.power_was_cut |= power_cut.is_some();
        for ((path, length), part) in self
            .sizes()
            .iter()
            .zip(power_cut.iter().copied().flatten().cycle())
        {
            let kept = self.synced.get(path).copied().unwrap_or(28).min(*length);
            let length = kept + (length - kept) * u64::from(*part) / 256;
            OpenOptions::new()
                .write(true)
                .open(path)
                .unwrap()
                .set_len(length)
                .unwrap();
        }
        let recovery = self.open();
        let left: BTreeMap<_, _> = read_all(self.log()).into_iter().collect();
        for (seq, content) in &self.records {
            match left.get(seq) {
                Some(found) => assert_eq!(found, content),
                None => assert!(power_cut.is_some() && *seq > self.durable, "{seq} is gone"),
            }
        }
        assert!(left.keys().all(|seq| self.records.contains_key(seq)));
        assert_eq!(recovery.records, left.len() as u64);
        assert!(recovery.next_seq > self.durable);
        self.records = left;
        self.next_seq = recovery.next_seq;
        self.durable = recovery.next_seq - 1;
        self.synced = self.sizes();
    }
}

/// Opening starts a segment, so a full log has room for its header.
#[test]
fn a_full_log_stays_under_its_limit_when_it_is_reopened() {
    for when_full in [WhenFull::Refuse, WhenFull::DropOldest] {
        for length in 0..100 {
            let mut model = Model::new(when_full);
            for _ in 0..40 {
                model.step(&Step::AppendAll {
                    lengths: vec![length, 1],
                });
            }
            model.step(&Step::Reopen);
            model.step(&Step::Reopen);
        }
    }
}

fn log_limit() -> u64 {
    2400
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_log_that_rejects_when_full_behaves_like_a_list(steps in steps()) {
        let mut model = Model::new(WhenFull::Refuse);
        steps.iter().for_each(|step| model.step(step));
    }

    #[test]
    fn a_log_that_drops_the_oldest_behaves_like_a_list(steps in steps()) {
        let mut model = Model::new(WhenFull::DropOldest);
        steps.iter().for_each(|step| model.step(step));
    }
}
