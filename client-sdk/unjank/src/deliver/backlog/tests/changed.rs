//! Batches that did not arrive as they were sent: others come first, and they move to the end of the disk.

use super::*;

/// Notes that the first batch that can be sent did not arrive as it was sent. Returns how often that has happened to it.
fn changed(backlog: &mut Backlog, losses: &Losses) -> (u128, u32) {
    let First::Batch(first) = backlog.first(losses) else {
        panic!("a batch should wait");
    };
    let times = backlog.changed_on_its_way(&first, Duration::ZERO, losses);
    (first.batch_id.as_u128(), times)
}

#[test]
fn after_a_restart_only_the_batch_that_was_changed_on_its_way_waits() {
    let batches: Vec<_> = (1..=4).map(|number| sealed(number, 100)).collect();
    let (folder, losses) = (left(&batches), Losses::default());
    let mut backlog = opened(&folder, &losses);
    assert_eq!(changed(&mut backlog, &losses), (1, 1));
    for number in 2..=4 {
        backlog.done(Uuid::from_u128(number), &losses);
    }
    drop(backlog);
    let mut backlog = opened(&folder, &losses);
    // Attempts count in one run of the app. The batch is alone now, so it moves only once another one is behind it.
    assert_eq!(changed(&mut backlog, &losses), (1, 1));
    backlog.push(sealed(5, 100), &losses);
    backlog.done(Uuid::from_u128(5), &losses);
    assert_eq!(changed(&mut backlog, &losses), (1, 2));
    drop(backlog);
    let mut backlog = opened(&folder, &losses);
    assert_eq!(ids(&mut backlog, &losses), [1]);
    assert_eq!(reported(&losses), []);
}

#[test]
fn a_batch_that_was_changed_on_its_way_pushes_no_other_out() {
    let batches: Vec<_> = (1..=4).map(|number| sealed(number, 1_000_000)).collect();
    let (folder, losses) = (left(&batches), Losses::default());
    let mut backlog = opened(&folder, &losses);
    assert_eq!(changed(&mut backlog, &losses), (1, 1));
    drop(backlog);
    let mut backlog = opened(&folder, &losses);
    assert_eq!(ids(&mut backlog, &losses), [1, 2, 3, 4]);
    assert_eq!(reported(&losses), []);
}

#[test]
fn damage_before_a_batch_that_moved_is_counted_once() {
    let batches: Vec<_> = (1..=4).map(|number| sealed(number, 100)).collect();
    let (folder, losses) = (left(&batches), Losses::default());
    damage(&folder, &[1]);
    let mut backlog = opened(&folder, &losses);
    backlog.done(Uuid::from_u128(1), &losses);
    assert_eq!(changed(&mut backlog, &losses), (3, 1));
    assert_eq!(ids(&mut backlog, &losses), [4, 3], "the batch did not move");
    assert_eq!(reported(&losses), other_lost(1));
    drop((backlog, opened(&folder, &losses)));
    assert_eq!(reported(&losses), []);
}

#[test]
fn a_batch_that_moved_expires_behind_younger_ones() {
    let batches: Vec<_> = (1..=4).map(|number| sealed(number, 100)).collect();
    let (folder, losses) = (left(&batches), Losses::default());
    let mut backlog = opened(&folder, &losses);
    assert_eq!(changed(&mut backlog, &losses), (1, 1));
    let moved = backlog.waiting.back_mut().unwrap();
    assert_eq!(moved.label.batch_id, Uuid::from_u128(1));
    moved.label.sealed_at -= 8 * DAY_US;
    backlog.begin(false, 7 * DAY_US, &losses);
    assert_eq!(ids(&mut backlog, &losses), [2, 3, 4]);
    assert_eq!(
        reported(&losses),
        [(Signal::Spans, "too_old".to_owned(), 2)]
    );
}
