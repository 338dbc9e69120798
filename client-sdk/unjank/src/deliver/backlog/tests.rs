//! Batches survive what happens to a process and its disk.

mod changed;

use unjank_protocol::{Batch, Metric};

use super::*;
use crate::deliver::batch::tests::{pending, split};
use crate::deliver::form::Form;
use crate::deliver::losses::ReportedLosses;

const DAY_US: i64 = 86_400_000_000;

fn sealed(number: u128, bytes: usize) -> Sealed {
    Sealed {
        batch_id: Uuid::from_u128(number),
        events: vec![(Signal::Spans, 2)],
        reported_losses: ReportedLosses::new(),
        split_from: Vec::new(),
        setting: Setting::default(),
        form: Form::Columns,
        body: vec![7; bytes],
    }
}

fn ids(backlog: &mut Backlog, losses: &Losses) -> Vec<u128> {
    let mut ids = Vec::new();
    while let First::Batch(sealed) = backlog.first(losses) {
        ids.push(sealed.batch_id.as_u128());
        backlog.done(sealed.batch_id, losses);
    }
    ids
}

#[test]
fn unfinished_batches_of_an_earlier_process_are_found_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let losses = Losses::default();
    let mut backlog = Backlog::open(folder.path(), LEAST_BYTES, &losses);
    for number in 1..=4 {
        backlog.push(sealed(number, 100), &losses);
    }
    backlog.done(Uuid::from_u128(1), &losses);
    drop(backlog);
    let mut backlog = Backlog::open(folder.path(), LEAST_BYTES, &losses);
    assert_eq!(ids(&mut backlog, &losses), [2, 3, 4]);
    drop(backlog);
    assert_eq!(
        Backlog::open(folder.path(), LEAST_BYTES, &losses).bytes(),
        0
    );
    assert!(losses.take().is_empty());
}

#[test]
fn the_oldest_batches_make_room_and_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let losses = Losses::default();
    let mut backlog = Backlog::open(folder.path(), LEAST_BYTES, &losses);
    for number in 0..20 {
        backlog.push(sealed(number, 500_000), &losses);
    }
    let left = ids(&mut backlog, &losses);
    assert!(left.len() >= 4 && left.last() == Some(&19), "{left:?}");
    let lost = losses.take();
    assert_eq!(lost[0].reason.as_str(), "disk_full");
    assert_eq!(lost[0].count, 2 * (20 - left.len() as u64));
}

#[test]
fn a_batch_that_makes_room_while_it_is_sent_is_lost_only_if_it_does_not_arrive() {
    for (has_arrived, lost) in [(true, 0), (false, 2)] {
        let losses = Losses::default();
        let mut backlog = Backlog::in_memory(250);
        backlog.push(sealed(1, 100), &losses);
        backlog.departs(Uuid::from_u128(1));
        for number in 2..=3 {
            backlog.push(sealed(number, 100), &losses);
        }
        backlog.landed(has_arrived, &losses);
        let counts = losses.take();
        assert_eq!(counts.iter().map(|one| one.count).sum::<u64>(), lost);
        assert_eq!(ids(&mut backlog, &losses), [2, 3]);
    }
}

#[test]
fn without_a_disk_the_limit_applies_to_memory() {
    let losses = Losses::default();
    let mut backlog = Backlog::in_memory(250);
    for number in 0..4 {
        backlog.push(sealed(number, 100), &losses);
    }
    assert_eq!(ids(&mut backlog, &losses), [2, 3]);
    assert_eq!(losses.take()[0].count, 4);
}

#[test]
fn expired_batches_are_given_up() {
    let losses = Losses::default();
    let mut backlog = Backlog::in_memory(1_000);
    for number in 0..4 {
        backlog.push(sealed(number, 100), &losses);
    }
    for (waiting, old) in backlog.waiting.iter_mut().zip([8, 8, 6, 0]) {
        waiting.label.sealed_at -= old * DAY_US;
    }
    backlog.expire(7 * DAY_US, &losses);
    assert_eq!(ids(&mut backlog, &losses), [2, 3]);
    assert_eq!(losses.take()[0].reason.as_str(), "too_old");
}

#[test]
fn losses_reported_by_a_lost_batch_are_reported_again() {
    let losses = Losses::default();
    let mut backlog = Backlog::in_memory(150);
    let reporting = Sealed {
        reported_losses: vec![(Signal::Janks, "refused".to_owned(), 3)],
        ..sealed(1, 100)
    };
    backlog.push(reporting, &losses);
    backlog.push(sealed(2, 100), &losses);
    let reported = losses.take();
    let reported: Vec<_> = reported
        .iter()
        .map(|one| (one.signal, &*one.reason, one.count))
        .collect();
    assert_eq!(
        reported,
        [
            (Signal::Spans, "memory_full", 2),
            (Signal::Janks, "refused", 3)
        ]
    );
}

/// Seals a batch of this many metrics.
fn of_metrics(metrics: usize) -> Sealed {
    pending(metrics).seal(1).unwrap()
}

/// Removes and returns all waiting batches, in order.
fn taken(backlog: &mut Backlog, losses: &Losses) -> Vec<Sealed> {
    let mut taken = Vec::new();
    while let First::Batch(sealed) = backlog.first(losses) {
        backlog.done(sealed.batch_id, losses);
        taken.push(sealed);
    }
    taken
}

fn ids_of(batches: &[Sealed]) -> Vec<Uuid> {
    batches.iter().map(|batch| batch.batch_id).collect()
}

fn reported(losses: &Losses) -> Vec<(Signal, String, u64)> {
    let lost = losses.take().into_iter();
    lost.map(|one| (one.signal, one.reason.to_string(), one.count))
        .collect()
}

fn other_lost(count: u64) -> Vec<(Signal, String, u64)> {
    vec![(Signal::Other, "disk_failed".to_owned(), count)]
}

/// Creates a folder of batches that an earlier process left.
fn left(batches: &[Sealed]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let losses = Losses::default();
    let mut backlog = Backlog::open(folder.path(), LEAST_BYTES, &losses);
    for batch in batches {
        backlog.push(batch.clone(), &losses);
    }
    folder
}

fn opened(folder: &tempfile::TempDir, losses: &Losses) -> Backlog {
    Backlog::open(folder.path(), LEAST_BYTES, losses)
}

fn segments(folder: &tempfile::TempDir) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder.path()).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "segment"));
    paths.sort();
    paths
}

/// Damages some of the records of batches with 100 bytes.
fn damage(folder: &tempfile::TempDir, records: &[usize]) {
    let path = segments(folder).remove(0);
    let mut bytes = std::fs::read(&path).unwrap();
    let bodies: Vec<_> = (0..bytes.len())
        .filter(|at| bytes[*at..].starts_with(&[7; 100]))
        .collect();
    for record in records {
        bytes[bodies[*record]] = 8;
    }
    std::fs::write(&path, bytes).unwrap();
}

/// Makes a file unreadable until dropped, by replacing it with a folder.
struct Unreadable(PathBuf, PathBuf);

impl Unreadable {
    fn make(path: &Path) -> Self {
        let aside = path.with_extension("aside");
        std::fs::rename(path, &aside).unwrap();
        std::fs::create_dir(path).unwrap();
        Self(path.to_owned(), aside)
    }
}

impl Drop for Unreadable {
    fn drop(&mut self) {
        std::fs::remove_dir(&self.0).unwrap();
        std::fs::rename(&self.1, &self.0).unwrap();
    }
}

#[test]
fn halves_replace_a_batch_that_fills_the_limit() {
    let losses = Losses::default();
    let whole = of_metrics(40);
    let halves = split(&whole);
    let room: usize = halves.iter().map(|half| half.body.len()).sum();
    let mut backlog = Backlog::in_memory(room as u64);
    backlog.push(whole.clone(), &losses);
    backlog.split(&whole, &losses);
    assert_eq!(ids_of(&taken(&mut backlog, &losses)), ids_of(&halves));
    assert_eq!(reported(&losses), [], "the halves lose nothing");
}

#[test]
fn each_part_waits_once_whenever_a_split_is_killed() {
    let whole = of_metrics(8);
    let halves = split(&whole);
    let quarters = split(&halves[0]);
    let [first, second] = halves;
    let [left_quarter, right_quarter] = quarters;
    // What is on disk, and what waits after the server has refused the batch again as too large.
    let cases = [
        (vec![whole.clone()], vec![&first, &second]),
        (vec![whole.clone(), first.clone()], vec![&first, &second]),
        (vec![whole.clone(), second.clone()], vec![&second, &first]),
        (
            vec![whole.clone(), left_quarter.clone(), second.clone()],
            vec![&left_quarter, &second, &first],
        ),
    ];
    for (before, after) in cases {
        let (folder, losses) = (left(&before), Losses::default());
        let mut backlog = opened(&folder, &losses);
        let First::Batch(again) = backlog.first(&losses) else {
            panic!("the batch should wait");
        };
        assert_eq!(again.batch_id, whole.batch_id);
        backlog.split(&again, &losses);
        let after: Vec<_> = after.into_iter().cloned().collect();
        assert_eq!(ids_of(&taken(&mut backlog, &losses)), ids_of(&after));
        assert_eq!(reported(&losses), []);
    }
    // Both halves are on disk, so the batch is not sent again.
    for before in [
        vec![whole.clone(), first, second.clone()],
        vec![whole, left_quarter, right_quarter, second],
    ] {
        let (folder, losses) = (left(&before), Losses::default());
        let mut backlog = opened(&folder, &losses);
        assert_eq!(ids_of(&taken(&mut backlog, &losses)), ids_of(&before[1..]));
        assert_eq!(reported(&losses), []);
    }
}

#[test]
fn a_batch_over_the_record_limit_is_whole_after_a_kill_between_its_halves() {
    let mut seed = 1_u64;
    let mut noise = || {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        seed >> 8
    };
    let names = (0..3_000).map(|_| (0..60).map(|_| format!("{:014x}", noise())).collect());
    let whole = crate::deliver::batch::tests::pending_of(names)
        .seal(1)
        .unwrap();
    assert!(is_too_large(&whole));
    let [first, second] = split(&whole);
    for before in [
        vec![],
        vec![first.clone()],
        vec![first.clone(), second.clone()],
    ] {
        let (folder, losses) = (left(&before), Losses::default());
        let mut backlog = opened(&folder, &losses);
        backlog.push_recovered(whole.clone(), &losses);
        let after = [first.clone(), second.clone()];
        assert_eq!(ids_of(&taken(&mut backlog, &losses)), ids_of(&after));
        assert_eq!(reported(&losses), []);
    }
}

#[test]
fn halves_read_from_disk_name_all_their_ancestors() {
    let whole = of_metrics(8);
    let folder = left(&[]);
    let losses = Losses::default();
    let mut backlog = opened(&folder, &losses);
    backlog.push(whole.clone(), &losses);
    backlog.split(&whole, &losses);
    drop(backlog);
    let mut backlog = opened(&folder, &losses);
    let First::Batch(half) = backlog.first(&losses) else {
        panic!("a half should wait");
    };
    assert_eq!(half.split_from, [whole.batch_id]);
    assert!(backlog.holds(whole.batch_id) && !backlog.may_lose(whole.batch_id));
    backlog.split(&half, &losses);
    let last = taken(&mut backlog, &losses).pop().unwrap();
    let upload = last.request(false).unwrap();
    let json = zstd::stream::decode_all(upload.body.as_slice()).unwrap();
    let batch: Batch<'_> = serde_json::from_slice(&json).unwrap();
    assert_eq!(batch.split_from, [whole.batch_id, half.batch_id]);
    let names: Vec<&str> = batch
        .metrics
        .iter()
        .map(|Metric { name, .. }| name.as_str())
        .collect();
    assert_eq!(names, ["m2", "m3"]);
}

#[test]
fn a_batch_that_an_earlier_version_left_is_sent_as_json() {
    let before = Sealed {
        form: Form::Json,
        ..sealed(1, 100)
    };
    // Earlier versions wrote no form.
    let label = serde_json::to_string(&Label::new(&before)).unwrap();
    assert!(!label.contains("form"), "{label}");
    let (folder, losses) = (left(&[before, sealed(2, 100)]), Losses::default());
    let found = taken(&mut opened(&folder, &losses), &losses);
    let forms = [true, false].map(|reads_columns| found[0].request(reads_columns).unwrap().form);
    assert_eq!(forms, [Form::Json; 2]);
    assert_eq!(found[1].request(true).unwrap().form, Form::Columns);
}

#[test]
fn unreadable_batches_are_kept_and_readable_ones_are_sent() {
    let batches: Vec<_> = (1..=4).map(|number| sealed(number, 500_000)).collect();
    let (folder, losses) = (left(&batches), Losses::default());
    let mut backlog = opened(&folder, &losses);
    let unreadable = Unreadable::make(&segments(&folder)[0]);
    backlog.begin(false, 7 * DAY_US, &losses);
    let readable = ids(&mut backlog, &losses);
    assert!(!readable.is_empty() && readable.len() < 4, "{readable:?}");
    assert!(matches!(backlog.first(&losses), First::Unreadable));
    drop(unreadable);
    backlog.begin(false, 7 * DAY_US, &losses);
    let soon = backlog.first(&losses);
    assert!(matches!(soon, First::Unreadable), "too early: {soon:?}");
    backlog.begin(true, 7 * DAY_US, &losses);
    let mut all = ids(&mut backlog, &losses);
    assert!(matches!(backlog.first(&losses), First::Nothing));
    all.extend(readable);
    assert_eq!(all, [1, 2, 3, 4]);
    assert_eq!(reported(&losses), []);
}

#[test]
fn finishing_later_batches_keeps_an_unreadable_one_on_disk() {
    let batches: Vec<_> = (1..=4).map(|number| sealed(number, 500_000)).collect();
    let (folder, losses) = (left(&batches), Losses::default());
    let mut backlog = opened(&folder, &losses);
    let unreadable = Unreadable::make(&segments(&folder)[0]);
    let readable = ids(&mut backlog, &losses);
    assert!(!readable.is_empty());
    drop((backlog, unreadable));
    let mut backlog = opened(&folder, &losses);
    assert_eq!(ids(&mut backlog, &losses)[..2], [1, 2]);
}

#[test]
fn an_unreadable_batch_counts_as_lost_to_the_disk_once_it_expires() {
    let (folder, losses) = (left(&[sealed(1, 100)]), Losses::default());
    let mut backlog = opened(&folder, &losses);
    let _unreadable = Unreadable::make(&segments(&folder)[0]);
    for _ in 0..20 {
        backlog.begin(true, 7 * DAY_US, &losses);
        assert!(matches!(backlog.first(&losses), First::Unreadable));
    }
    assert_eq!(reported(&losses), []);
    backlog.waiting[0].label.sealed_at -= 8 * DAY_US;
    backlog.begin(true, 7 * DAY_US, &losses);
    assert!(matches!(backlog.first(&losses), First::Nothing));
    assert_eq!(
        reported(&losses),
        [(Signal::Spans, "disk_failed".to_owned(), 2)]
    );
}

#[test]
fn damaged_records_are_counted_once_over_several_starts() {
    let batches: Vec<_> = (1..=4).map(|number| sealed(number, 100)).collect();
    let (folder, losses) = (left(&batches), Losses::default());
    damage(&folder, &[1, 2]);
    for _ in 0..3 {
        drop(opened(&folder, &losses));
    }
    assert_eq!(reported(&losses), []);
    let mut backlog = opened(&folder, &losses);
    assert_eq!(ids(&mut backlog, &losses), [1, 4]);
    assert_eq!(reported(&losses), other_lost(2));
    drop((backlog, opened(&folder, &losses)));
    assert_eq!(reported(&losses), []);
}

#[test]
fn a_folder_that_cannot_be_opened_does_not_count_as_empty_and_is_retried() {
    let (folder, losses) = (left(&[sealed(1, 100), sealed(2, 100)]), Losses::default());
    let unreadable = Unreadable::make(&folder.path().join("trimmed"));
    let mut backlog = opened(&folder, &losses);
    assert!(matches!(backlog.first(&losses), First::Unreadable));
    backlog.push(sealed(3, 100), &losses);
    assert!(matches!(backlog.first(&losses), First::Batch(_)));
    drop(unreadable);
    backlog.begin(true, 7 * DAY_US, &losses);
    backlog.write_again(&losses);
    drop(backlog);
    let mut backlog = opened(&folder, &losses);
    assert_eq!(ids(&mut backlog, &losses), [1, 2, 3]);
    assert_eq!(reported(&losses), []);
}

#[test]
fn a_folder_that_never_opens_is_emptied_once_its_batches_have_expired() {
    let (folder, losses) = (left(&[sealed(1, 100)]), Losses::default());
    let unreadable = Unreadable::make(&folder.path().join("trimmed"));
    let mut backlog = opened(&folder, &losses);
    backlog.begin(true, 7 * DAY_US, &losses);
    assert!(matches!(backlog.first(&losses), First::Unreadable));
    let path = segments(&folder).remove(0);
    let written = std::fs::File::options().write(true).open(path).unwrap();
    let changed = written.metadata().unwrap().modified().unwrap();
    written
        .set_modified(changed - Duration::from_secs(8 * 86_400))
        .unwrap();
    backlog.begin(true, 7 * DAY_US, &losses);
    assert!(matches!(backlog.first(&losses), First::Nothing));
    assert_eq!(reported(&losses), other_lost(1));
    drop(unreadable);
}

#[test]
fn batches_in_a_closed_folder_are_not_sent_after_consent_is_withdrawn() {
    let (folder, losses) = (left(&[sealed(1, 100)]), Losses::default());
    let unreadable = Unreadable::make(&folder.path().join("trimmed"));
    let mut backlog = opened(&folder, &losses);
    backlog.clear(&losses);
    backlog.push(sealed(2, 100), &losses);
    drop(unreadable);
    backlog.begin(true, 7 * DAY_US, &losses);
    assert_eq!(ids(&mut backlog, &losses), [2]);
}
