//! Everything that was ever on the wire must remain readable. Golden files are added, but never changed.

use unjank_columns::{Bounds, read, write};
use unjank_protocol::{Batch, Signal};

/// A batch with every signal and every field, in both forms.
const JSON: &str = include_str!("../golden/batch_v2.json");
const COLUMNS: &[u8] = include_bytes!("../golden/batch_v2.bin");

#[test]
fn a_batch_of_the_first_version_is_read() {
    let of_json: Batch<'_> = serde_json::from_str(JSON).unwrap();
    let of_columns = read(COLUMNS, &Bounds::default()).unwrap();
    assert!(of_columns.malformed.is_empty());
    assert_eq!(of_columns.batch, of_json);
    let signals = Signal::ALL.len() - 1;
    assert!(of_json.events() >= signals, "each signal has an event");
}

/// A change of the bytes is a change for every reader. If it is meant, add a file.
#[test]
fn the_batch_is_written_as_it_was() {
    let batch: Batch<'_> = serde_json::from_str(JSON).unwrap();
    assert_eq!(write(&batch), COLUMNS);
}

/// Numbers of signals are numbers of sections. New ones are added at the end.
#[test]
fn signals_keep_their_numbers() {
    let names: Vec<_> = Signal::ALL.iter().map(|signal| signal.as_str()).collect();
    let first = [
        "spans",
        "frame_windows",
        "janks",
        "traffic",
        "page_loads",
        "metrics",
        "app_starts",
        "recompositions",
        "sdk_health",
    ];
    assert_eq!(names[..first.len()], first);
}
