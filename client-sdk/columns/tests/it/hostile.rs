//! Bytes that nobody meant to write: they are refused, or read within the bounds.

use proptest::prelude::*;
use unjank_columns::{Bounds, Unreadable, read, write};
use unjank_protocol::Batch;

use crate::made::Maker;

/// A change of some bytes.
#[derive(Clone, Debug)]
enum Change {
    Set(u8),
    Flip(u8),
    Insert(u8),
    Remove,
    /// The largest number.
    Largest,
    CutOff,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<u8>().prop_map(Change::Set),
        (0..8_u8).prop_map(Change::Flip),
        any::<u8>().prop_map(Change::Insert),
        Just(Change::Remove),
        Just(Change::Largest),
        Just(Change::CutOff),
    ]
}

fn apply(body: &mut Vec<u8>, at: usize, change: &Change) {
    match change {
        Change::Set(byte) => body[at] = *byte,
        Change::Flip(bit) => body[at] ^= 1 << bit,
        Change::Insert(byte) => body.insert(at, *byte),
        Change::Remove => drop(body.remove(at)),
        Change::Largest => {
            body.splice(at..=at, [0xff; 9].into_iter().chain([1]));
        }
        Change::CutOff => body.truncate(at),
    }
}

/// Reads and checks what holds of every batch that can be read.
fn read_within(body: &[u8], bounds: &Bounds) -> Result<(), TestCaseError> {
    let Ok(read) = read(body, bounds) else {
        return Ok(());
    };
    let events = read.batch.events() + read.malformed.len();
    prop_assert!(events <= bounds.events);
    prop_assert!(read.text_bytes <= bounds.text_bytes);
    // What was read can be written, and is read as the same.
    let again = write(&read.batch);
    let written = unjank_columns::read(&again, bounds);
    let written = written.map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert!(written.malformed.is_empty());
    prop_assert_eq!(written.batch.events(), read.batch.events());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_batch_is_refused_or_read_within_its_bounds(
        seed: u64,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), change()), 1..5),
    ) {
        let mut body = write(&Maker::new(seed).batch());
        for (at, change) in changes {
            if !body.is_empty() {
                let at = at.index(body.len());
                apply(&mut body, at, &change);
            }
        }
        read_within(&body, &Bounds::default())?;
    }

    #[test]
    fn any_bytes_are_refused_or_read_within_their_bounds(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        read_within(&bytes, &Bounds::default())?;
        let mut body = b"uj2\xff".to_vec();
        body.extend(&bytes);
        read_within(&body, &Bounds::default())?;
    }
}

#[test]
fn every_beginning_of_a_batch_is_refused() {
    let body = write(&Maker::new(5).batch());
    let whole = read(&body, &Bounds::default()).unwrap().batch.events();
    for end in 0..body.len() {
        if let Ok(read) = read(&body[..end], &Bounds::default()) {
            assert!(read.batch.events() <= whole);
        }
    }
}

/// A section with a table of the given columns.
fn with_table(section: u8, rows: &[u8], columns: &[u8]) -> Vec<u8> {
    let mut body = write(&Batch::default());
    let table = [rows, columns].concat();
    body.extend([section, u8::try_from(table.len()).unwrap()]);
    body.extend(table);
    body
}

const SPANS: u8 = 8;

#[test]
fn tables_that_claim_many_rows_are_refused_before_memory_is_taken() {
    for rows in [
        &[0xff, 0xff, 0xff, 0xff, 0x0f][..],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
    ] {
        let error = read(&with_table(SPANS, rows, &[]), &Bounds::default()).unwrap_err();
        let limit = Bounds::default().events;
        assert_eq!(error, Unreadable::TooManyEvents { limit });
    }
}

#[test]
fn lists_that_claim_many_rows_are_refused_before_memory_is_taken() {
    // One span whose list of attributes has 2^35 rows, all alike.
    let many = [0x80, 0x80, 0x80, 0x80, 0x80, 0x01];
    let counts = [&[14 << 2 | 1, 6][..], &many].concat();
    let rows = [&[14 << 2 | 2, 6][..], &many].concat();
    let body = with_table(SPANS, &[1], &[counts, rows].concat());
    assert_eq!(
        read(&body, &Bounds::default()).unwrap_err(),
        Unreadable::ListsTooLarge
    );
}

#[test]
fn shared_structures_that_claim_many_rows_are_refused_before_they_are_read() {
    // One span whose table of code locations has 2^35 rows, all alike.
    let many = [0x80, 0x80, 0x80, 0x80, 0x80, 0x01];
    let columns = [&[13 << 2 | 2, 6][..], &many].concat();
    assert_eq!(
        read(&with_table(SPANS, &[1], &columns), &Bounds::default()).unwrap_err(),
        Unreadable::ListsTooLarge
    );
}

#[test]
fn a_small_body_cannot_stand_for_more_text_than_a_large_one() {
    let mut batch = Batch::default();
    batch.resource.app_id = "a".repeat(10_000).into();
    let table = [&[0x90, 0x4e][..], &[3 << 2 | 1, 1, 1]].concat();
    let mut body = write(&batch);
    body.extend([SPANS, u8::try_from(table.len()).unwrap()]);
    body.extend(table);
    // 10,000 spans with a name of 10,000 bytes.
    let limit = Bounds::default().text_bytes;
    let error = read(&body, &Bounds::default()).unwrap_err();
    assert_eq!(error, Unreadable::TextsTooLarge { limit });
}
