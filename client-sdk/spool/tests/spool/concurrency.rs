//! One thread appends, one reads and one trims, as in real use.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use unjank_spool::{AppendError, Chunk, Log, Options, Reader, Seq};

use crate::folder::{Folder, payload};

const RECORDS: u64 = 30_000;

fn append_everything(log: &mut Log) {
    let mut next = 1;
    while next <= RECORDS {
        let group: Vec<_> = (next..=RECORDS)
            .take(17)
            .map(|seq| payload(seq, (seq % 90) as usize))
            .collect();
        let all = log.append_all(&group);
        next += all.count as u64;
        log.sync().unwrap();
        match all.error {
            None => {}
            Some(AppendError::Full { .. }) => thread::yield_now(),
            Some(error) => panic!("{error}"),
        }
    }
}

fn read_everything(reader: &mut Reader, done: &SyncSender<Seq>) {
    let (mut expected, mut chunk) = (1, Chunk::default());
    while expected <= RECORDS {
        if !reader.read_into(&mut chunk, 3000).unwrap() {
            thread::yield_now();
        }
        for record in chunk.iter() {
            assert_eq!(record.seq, expected);
            assert_eq!(record.payload, payload(expected, (expected % 90) as usize));
            expected += 1;
        }
        if let Some(seq) = chunk.last_seq() {
            done.send(seq).unwrap();
        }
    }
}

#[test]
fn every_record_is_read_once_and_in_order_from_a_log_that_is_often_full() {
    let folder = Folder::new();
    let options = Options {
        segment_bytes: 4000,
        max_bytes: 40_000,
        ..folder.options()
    };
    let (mut log, _) = Log::open(options).unwrap();
    let (mut reader, trimmer) = (log.reader(), log.trimmer());
    let (done, to_trim) = sync_channel(4);
    thread::scope(|scope| {
        scope.spawn(|| append_everything(&mut log));
        scope.spawn(move || read_everything(&mut reader, &done));
        scope.spawn(move || {
            to_trim.iter().for_each(|seq| trimmer.trim(seq).unwrap());
        });
    });
    assert_eq!(
        (log.durable_seq(), log.oldest_seq()),
        (RECORDS, RECORDS + 1)
    );
}
