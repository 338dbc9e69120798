//! The log, step by step without its thread, and the state after its thread has panicked.

use std::path::Path;

use futures_util::future::join_all;

use super::*;
use crate::metrics::Metrics;

const FREE: u64 = 0;

fn settings(dir: &Path, min_free_bytes: u64) -> LogSettings {
    LogSettings {
        dir: dir.to_owned(),
        max_bytes: 1 << 20,
        max_record_bytes: 1 << 16,
        min_free_bytes,
    }
}

/// A log without a thread.
fn assemble(dir: &Path, min_free_bytes: u64) -> (IngestLog, Disk) {
    let settings = settings(dir, min_free_bytes);
    IngestLog::assemble(DurableFiles::default(), settings, Metrics::new().log).unwrap()
}

fn open(dir: &Path) -> (IngestLog, LogMetrics) {
    let metrics = Metrics::new().log;
    let log = IngestLog::open(settings(dir, FREE), metrics.clone()).unwrap();
    (log, metrics)
}

/// Runs steps until no command waits. Returns the number of steps.
fn run(disk: &mut Disk) -> usize {
    let mut steps = 0;
    while let Ok(first) = disk.commands.try_recv() {
        let close = disk.step(first);
        steps += 1;
        if let Some(done) = close {
            done.send(()).unwrap();
        }
    }
    steps
}

/// Checks the health while the log runs a step.
async fn health(log: &IngestLog, disk: &mut Disk) -> Result<(), &'static str> {
    *log.0.probed.lock().unwrap() = None;
    let (health, _) = tokio::join!(log.health(), async { run(disk) });
    health
}

#[tokio::test]
async fn waiting_appends_share_a_step_and_a_sync() {
    let folder = tempfile::tempdir().unwrap();
    let (log, mut disk) = assemble(folder.path(), FREE);
    let appends = join_all((0..3).map(|_| log.append(vec![7; 100])));
    let (appended, steps) = tokio::join!(appends, async { run(&mut disk) });
    assert!(appended.iter().all(Result::is_ok), "{appended:?}");
    assert_eq!(steps, 1);
    assert_eq!(*log.durable().borrow(), 3);
    assert_eq!(log.pending_bytes(), 300);
    assert_eq!(disk.state.metrics.sync_seconds.get_sample_count(), 1);

    let (_, steps) = tokio::join!(log.close(), async { run(&mut disk) });
    assert_eq!(steps, 1);
}

#[tokio::test]
async fn a_panic_fails_waiting_appends_and_ends_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let (log, disk) = assemble(folder.path(), FREE);
    let started = async {
        log.0.queue.send(Command::Panic).await.unwrap();
        disk::start(disk).unwrap();
    };
    let (waiting, ()) = tokio::join!(log.append(vec![7; 100]), started);
    assert!(matches!(waiting, Err(LogError::Unknown)), "{waiting:?}");
    log.ended().await;
    let later = log.append(vec![7; 100]).await;
    assert!(matches!(later, Err(LogError::Failed(_))), "{later:?}");
    assert_eq!(log.health().await, Err("the log has ended"));
    assert!(
        log.durable().has_changed().is_ok(),
        "the writer can drain on"
    );
    // The folder is unlocked for the next start.
    open(folder.path());
}

#[tokio::test]
async fn a_disk_without_room_is_unhealthy_and_recovers_without_traffic() {
    let folder = tempfile::tempdir().unwrap();
    let (log, mut disk) = assemble(folder.path(), u64::MAX);
    let nearly_full = Err("the disk is nearly full");
    assert_eq!(health(&log, &mut disk).await, nearly_full);
    disk.min_free_bytes = FREE;
    assert_eq!(
        log.health().await,
        nearly_full,
        "the disk is probed once a second"
    );
    assert_eq!(health(&log, &mut disk).await, Ok(()));
}

#[tokio::test]
async fn a_failing_disk_is_unhealthy_and_recovers_without_traffic() {
    let folder = tempfile::tempdir().unwrap();
    let (log, mut disk) = assemble(folder.path(), FREE);
    let in_the_way = folder.path().join("probe");
    std::fs::create_dir(&in_the_way).unwrap();
    assert_eq!(health(&log, &mut disk).await, Err("the disk fails"));
    std::fs::remove_dir(&in_the_way).unwrap();
    assert_eq!(health(&log, &mut disk).await, Ok(()));
}

#[tokio::test]
async fn a_full_log_is_unhealthy_before_it_rejects_a_batch() {
    let folder = tempfile::tempdir().unwrap();
    let (log, mut disk) = assemble(folder.path(), FREE);
    while disk.max_bytes - disk.log.bytes() >= 4096 {
        let (appended, _) = tokio::join!(log.append(vec![7; 3000]), async { run(&mut disk) });
        appended.unwrap();
    }
    let full = Err("the log is at its limit");
    assert_eq!(health(&log, &mut disk).await, full);
    let last = *log.durable().borrow();
    log.drained(last, &LogRecords::default()).await;
    assert_eq!(health(&log, &mut disk).await, Ok(()));
}

#[tokio::test]
async fn concurrent_health_checks_share_one_probe() {
    let folder = tempfile::tempdir().unwrap();
    let (log, mut disk) = assemble(folder.path(), FREE);
    let asked = join_all((0..50).map(|_| log.health()));
    let waiting = async {
        let waiting = disk.commands.len();
        run(&mut disk);
        waiting
    };
    let (healthy, waiting) = tokio::join!(asked, waiting);
    assert!(healthy.iter().all(Result::is_ok), "{healthy:?}");
    assert_eq!(waiting, 1);
    assert_eq!(log.health().await, Ok(()));
    assert_eq!(run(&mut disk), 0, "the verdict is valid for a second");
}

#[tokio::test]
async fn a_probe_among_batches_needs_no_separate_sync() {
    let folder = tempfile::tempdir().unwrap();
    let (log, mut disk) = assemble(folder.path(), FREE);
    let (appended, healthy, _) = tokio::join!(log.append(vec![7; 100]), log.health(), async {
        run(&mut disk)
    });
    appended.unwrap();
    assert_eq!(healthy, Ok(()));
    assert!(!folder.path().join("probe").exists());
}

#[tokio::test]
async fn a_torn_end_is_counted_and_a_whole_record_with_wrong_content_is_damage() {
    for (change, torn, damaged, kept) in [
        (cut as fn(&mut Vec<u8>), 17, 0, 1),
        (lengthen, 11, 0, 2),
        (overwrite, 128, 1, 1),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (log, metrics) = open(folder.path());
        for _ in 0..2 {
            log.append(vec![7; 100]).await.unwrap();
        }
        log.close().await;
        assert_eq!(metrics.torn_bytes.get(), 0);

        let names = std::fs::read_dir(folder.path()).unwrap();
        let mut paths = names.map(|entry| entry.unwrap().path());
        let segment = paths.find(|path| path.extension().is_some_and(|end| end == "segment"));
        let mut bytes = std::fs::read(segment.as_ref().unwrap()).unwrap();
        change(&mut bytes);
        std::fs::write(segment.unwrap(), bytes).unwrap();

        let (log, metrics) = open(folder.path());
        let found = (metrics.torn_bytes.get(), metrics.damaged_ranges.get());
        assert_eq!(found, (torn, damaged));
        assert_eq!(log.recall(|_, _| ()).unwrap(), kept);
    }
}

/// Leaves the first 17 bytes of the last record.
fn cut(segment: &mut Vec<u8>) {
    segment.truncate(segment.len() - 128 + 17);
}

fn lengthen(segment: &mut Vec<u8>) {
    segment.extend_from_slice(&[7; 11]);
}

/// Overwrites the last 16 bytes of the last payload.
fn overwrite(segment: &mut Vec<u8>) {
    let end = segment.len();
    segment.truncate(end - 16);
    segment.resize(end, 0);
}

#[tokio::test]
async fn a_log_keeps_its_identity_and_its_last_record_at_open() {
    let folder = tempfile::tempdir().unwrap();
    let (log, _) = open(folder.path());
    let identity = log.identity();
    assert_eq!(log.durable_at_open(), 0);
    log.append(vec![7; 100]).await.unwrap();
    log.append(vec![7; 100]).await.unwrap();
    assert_eq!(log.durable_at_open(), 0);
    log.close().await;

    let (log, _) = open(folder.path());
    assert_eq!((log.identity(), log.durable_at_open()), (identity, 2));
    log.close().await;

    std::fs::write(folder.path().join("identity"), "?").unwrap();
    let damaged = IngestLog::open(settings(folder.path(), FREE), Metrics::new().log);
    assert!(damaged.is_err_and(|error| error.to_string().contains("identity is damaged")));
}

/// Appends a record and says that it is drained.
async fn append_and_drain(log: &IngestLog, seq: Seq, bytes: usize) {
    log.append(vec![7; bytes]).await.unwrap();
    let records = log.read(seq, 1 << 20, seq).await.unwrap();
    log.drained(seq, &records).await;
}

#[tokio::test]
async fn a_backup_keeps_drained_records_until_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (log, _) = open(folder.path());
    append_and_drain(&log, 1, 100).await;
    assert_eq!(log.trimmed(), 1);
    let hold = LogHold::take(folder.path()).unwrap().unwrap();
    append_and_drain(&log, 2, 100).await;
    assert_eq!(log.trimmed(), 1, "a held record was deleted");
    let files = hold.files().unwrap().unwrap();
    assert!(
        !files.segments.is_empty() && files.others.len() == 2,
        "{files:?}"
    );
    drop(hold);
    append_and_drain(&log, 3, 100).await;
    assert_eq!(log.trimmed(), 3);
}

#[test]
fn a_backup_fails_if_the_folder_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    std::fs::create_dir(&log).unwrap();
    let hold = LogHold::take(&log).unwrap().unwrap();
    std::fs::rename(&log, folder.path().join("away")).unwrap();
    let fails = || {
        let error = hold.files().unwrap_err().to_string();
        assert!(error.contains("was replaced"), "{error}");
    };
    fails();
    std::fs::create_dir(&log).unwrap();
    std::fs::write(log.join("backup.lock"), "").unwrap();
    fails();
}

#[tokio::test]
async fn a_log_that_is_half_full_deletes_records_and_the_backup_learns_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let (log, metrics) = open(folder.path());
    let hold = LogHold::take(folder.path()).unwrap().unwrap();
    let mut seq = 0;
    while metrics.bytes.get() <= metrics.max_bytes.get() / 2 {
        assert_eq!(log.trimmed(), 0);
        seq += 1;
        append_and_drain(&log, seq, 1 << 15).await;
    }
    assert_eq!(log.trimmed(), seq);
    assert_eq!(hold.files().unwrap(), None);
}
