//! A process is killed while it appends. Everything it reported as synced is there.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use unjank_spool::{Log, Options};

use crate::folder::{Folder, payload, read_all};

const FOLDER: &str = "SPOOL_TEST_KILL_FOLDER";
const LENGTH: usize = 90;

/// Not a test of its own: the killed process is this binary running only this function.
#[test]
fn the_process_that_is_killed() {
    let Some(dir) = std::env::var_os(FOLDER) else {
        return;
    };
    let options = options(PathBuf::from(dir));
    let (mut log, _) = Log::open(options).unwrap();
    let mut out = std::io::stdout();
    loop {
        for _ in 0..3 {
            let seq = log.next_seq();
            assert_eq!(log.append(&payload(seq, LENGTH)).unwrap().seq, seq);
        }
        let durable = log.sync().unwrap();
        writeln!(out, "synced {durable}").unwrap();
        if durable % 40 == 0 {
            log.trimmer().trim(durable - 30).unwrap();
        }
    }
}

fn options(dir: PathBuf) -> Options {
    Options {
        segment_bytes: 1000,
        max_record_bytes: 100,
        ..Options::new(dir, 1 << 30)
    }
}

#[test]
fn everything_that_was_synced_survives_being_killed() {
    let folder = Folder::new();
    let mut synced = 0;
    for round in 0..30_usize {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["kill::the_process_that_is_killed", "--exact", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Lines still in the pipe when the process dies count as well.
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for (line, number) in lines.map_while(Result::ok).zip(0..) {
            if let Some(seq) = line.strip_prefix("synced ") {
                synced = seq.parse().unwrap_or(synced);
            }
            if number == 3 + round * 7 {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        let (log, recovery) = Log::open(options(folder.path().to_owned())).unwrap();
        assert!(recovery.damaged.is_empty(), "{recovery:?}");
        assert!(
            recovery.next_seq > synced,
            "{synced} was synced, but {recovery:?}"
        );
        let records = read_all(&log);
        let expected = recovery.first_seq..recovery.next_seq;
        assert!(expected.start <= synced.saturating_sub(29).max(1));
        assert!(expected.eq(records.iter().map(|(seq, _)| *seq)));
        for (seq, content) in records {
            assert_eq!(content, payload(seq, LENGTH));
        }
    }
    assert!(synced > 1000);
}
