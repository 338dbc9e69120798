use unjank_protocol::{Batch, Metric};

use super::*;
use crate::batch::tests::pending;
use crate::losses::Told;

const DAY_US: i64 = 86_400_000_000;

fn sealed(number: u128, bytes: usize) -> Sealed {
    Sealed {
        batch_id: Uuid::from_u128(number),
        events: vec![(Signal::Spans, 2)],
        told: Told::new(),
        split_from: Vec::new(),
        setting: Setting::default(),
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
fn what_an_earlier_process_left_is_found_in_order_and_what_was_done_is_not() {
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
fn the_oldest_make_room_and_are_counted() {
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
fn without_a_disk_memory_holds_as_much() {
    let losses = Losses::default();
    let mut backlog = Backlog::in_memory(250);
    for number in 0..4 {
        backlog.push(sealed(number, 100), &losses);
    }
    assert_eq!(ids(&mut backlog, &losses), [2, 3]);
    assert_eq!(losses.take()[0].count, 4);
}

#[test]
fn what_is_too_old_is_given_up() {
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
fn losses_that_a_lost_batch_told_are_told_again() {
    let losses = Losses::default();
    let mut backlog = Backlog::in_memory(150);
    let telling = Sealed {
        told: vec![(Signal::Janks, "refused".to_owned(), 3)],
        ..sealed(1, 100)
    };
    backlog.push(telling, &losses);
    backlog.push(sealed(2, 100), &losses);
    let told = losses.take();
    let told: Vec<_> = told
        .iter()
        .map(|one| (one.signal, &*one.reason, one.count))
        .collect();
    assert_eq!(
        told,
        [
            (Signal::Spans, "disk_full", 2),
            (Signal::Janks, "refused", 3)
        ]
    );
}

/// A batch of this many metrics.
fn of_metrics(metrics: usize) -> Sealed {
    pending(metrics).seal(1).unwrap()
}

/// Takes out all that waits, in order.
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

fn told(losses: &Losses) -> Vec<(Signal, String, u64)> {
    let told = losses.take().into_iter();
    told.map(|one| (one.signal, one.reason.to_string(), one.count))
        .collect()
}

fn other_lost(count: u64) -> Vec<(Signal, String, u64)> {
    vec![(Signal::Other, "disk_failed".to_owned(), count)]
}

/// A folder of batches that an earlier process left.
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
fn halves_take_the_place_of_a_batch_that_fills_the_room() {
    let losses = Losses::default();
    let whole = of_metrics(40);
    let halves = whole.split().unwrap();
    let room: usize = halves.iter().map(|half| half.body.len()).sum();
    let mut backlog = Backlog::in_memory(room as u64);
    backlog.push(whole.clone(), &losses);
    backlog.split(&whole, &losses);
    assert_eq!(ids_of(&taken(&mut backlog, &losses)), ids_of(&halves));
    assert_eq!(told(&losses), [], "what the halves hold is not lost");
}

#[test]
fn whatever_a_kill_left_of_cutting_a_batch_each_part_waits_once() {
    let whole = of_metrics(8);
    let halves = whole.split().unwrap();
    let quarters = halves[0].split().unwrap();
    let [first, second] = halves;
    let [left_quarter, right_quarter] = quarters;
    // What is there, and what waits after the batch was refused again as too large.
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
            panic!("it waits");
        };
        assert_eq!(again.batch_id, whole.batch_id);
        backlog.split(&again, &losses);
        let after: Vec<_> = after.into_iter().cloned().collect();
        assert_eq!(ids_of(&taken(&mut backlog, &losses)), ids_of(&after));
        assert_eq!(told(&losses), []);
    }
    // Both halves are there, so the batch is not sent again.
    for before in [
        vec![whole.clone(), first, second.clone()],
        vec![whole, left_quarter, right_quarter, second],
    ] {
        let (folder, losses) = (left(&before), Losses::default());
        let mut backlog = opened(&folder, &losses);
        assert_eq!(ids_of(&taken(&mut backlog, &losses)), ids_of(&before[1..]));
        assert_eq!(told(&losses), []);
    }
}

#[test]
fn halves_that_were_read_from_the_disk_name_all_they_were_cut_from() {
    let whole = of_metrics(8);
    let folder = left(&[]);
    let losses = Losses::default();
    let mut backlog = opened(&folder, &losses);
    backlog.push(whole.clone(), &losses);
    backlog.split(&whole, &losses);
    drop(backlog);
    let mut backlog = opened(&folder, &losses);
    let First::Batch(half) = backlog.first(&losses) else {
        panic!("a half waits");
    };
    assert_eq!(half.split_from, [whole.batch_id]);
    assert!(backlog.holds(whole.batch_id) && !backlog.may_lose(whole.batch_id));
    backlog.split(&half, &losses);
    let last = taken(&mut backlog, &losses).pop().unwrap();
    let json = zstd::stream::decode_all(last.request().unwrap().as_slice()).unwrap();
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
fn what_cannot_be_read_now_is_kept_and_what_can_be_is_sent() {
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
    assert!(matches!(soon, First::Unreadable), "not at once: {soon:?}");
    backlog.begin(true, 7 * DAY_US, &losses);
    let mut all = ids(&mut backlog, &losses);
    assert!(matches!(backlog.first(&losses), First::Nothing));
    all.extend(readable);
    assert_eq!(all, [1, 2, 3, 4]);
    assert_eq!(told(&losses), []);
}

#[test]
fn what_was_done_with_behind_a_batch_that_does_not_read_leaves_it_there() {
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
fn a_batch_that_never_reads_is_counted_as_lost_to_the_disk_and_others_are_not() {
    let (folder, losses) = (left(&[sealed(1, 100)]), Losses::default());
    let mut backlog = opened(&folder, &losses);
    let _unreadable = Unreadable::make(&segments(&folder)[0]);
    for _ in 0..20 {
        backlog.begin(true, 7 * DAY_US, &losses);
        assert!(matches!(backlog.first(&losses), First::Unreadable));
    }
    assert_eq!(told(&losses), []);
    backlog.waiting[0].label.sealed_at -= 8 * DAY_US;
    backlog.begin(true, 7 * DAY_US, &losses);
    assert!(matches!(backlog.first(&losses), First::Nothing));
    assert_eq!(
        told(&losses),
        [(Signal::Spans, "disk_failed".to_owned(), 2)]
    );
}

#[test]
fn damaged_records_are_counted_once_however_often_the_app_starts() {
    let batches: Vec<_> = (1..=4).map(|number| sealed(number, 100)).collect();
    let (folder, losses) = (left(&batches), Losses::default());
    let path = segments(&folder).remove(0);
    let mut bytes = std::fs::read(&path).unwrap();
    let bodies: Vec<_> = (0..bytes.len())
        .filter(|at| bytes[*at..].starts_with(&[7; 100]))
        .collect();
    bytes[bodies[1]] = 8;
    bytes[bodies[2]] = 8;
    std::fs::write(&path, bytes).unwrap();
    for _ in 0..3 {
        drop(opened(&folder, &losses));
    }
    assert_eq!(told(&losses), []);
    let mut backlog = opened(&folder, &losses);
    assert_eq!(ids(&mut backlog, &losses), [1, 4]);
    assert_eq!(told(&losses), other_lost(2));
    drop((backlog, opened(&folder, &losses)));
    assert_eq!(told(&losses), []);
}

#[test]
fn a_folder_that_cannot_be_opened_is_not_taken_for_an_empty_one_and_is_tried_again() {
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
    assert_eq!(told(&losses), []);
}

#[test]
fn a_folder_that_never_opens_is_begun_anew_when_the_server_would_not_take_what_is_in_it() {
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
    assert_eq!(told(&losses), other_lost(1));
    drop(unreadable);
}

#[test]
fn what_cannot_be_opened_when_consent_ends_is_not_sent_later() {
    let (folder, losses) = (left(&[sealed(1, 100)]), Losses::default());
    let unreadable = Unreadable::make(&folder.path().join("trimmed"));
    let mut backlog = opened(&folder, &losses);
    backlog.clear(&losses);
    backlog.push(sealed(2, 100), &losses);
    drop(unreadable);
    backlog.begin(true, 7 * DAY_US, &losses);
    assert_eq!(ids(&mut backlog, &losses), [2]);
}
