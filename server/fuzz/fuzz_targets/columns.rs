//! Columnar batches, from their bytes to a record. What can be read is written and read again.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use unjank_columns::{Bounds, Unreadable, read, write};
use unjank_foundation::clock::UnixTime;
use unjank_protocol::Limits;
use unjank_server::ingest::{self, Body, Context, Device, Scrubbing};
use unjank_server::recent::{RecentNames, RecentStacks};
use unjank_stacks::RuleSet;

static RULES: LazyLock<RuleSet> = LazyLock::new(RuleSet::built_in);
static SCRUBBING: LazyLock<Scrubbing> = LazyLock::new(Scrubbing::default);
static STACKS: LazyLock<RecentStacks> = LazyLock::new(|| RecentStacks::new(1_000));
static NAMES: LazyLock<RecentNames> = LazyLock::new(|| RecentNames::new(1_000));

fuzz_target!(|body: &[u8]| {
    let bounds = Bounds::default();
    let body = Body::new(body);
    let read_once = match read(body.bytes(), &bounds) {
        // Texts that are none are replaced, so none is left.
        Err(Unreadable::NoText) => {
            let Some(mended) = body.mended_columns() else {
                return;
            };
            assert!(mended.len() <= 4 * body.bytes().len());
            let read = read(mended, &bounds);
            assert!(!matches!(read, Err(Unreadable::NoText)));
            read
        }
        read => read,
    };
    let Ok(batch) = read_once else {
        return;
    };
    let events = batch.batch.events() + batch.malformed.len();
    assert!(events <= bounds.events && batch.text_bytes <= bounds.text_bytes);
    let again = write(&batch.batch);
    // A list whose first rows are left out is written with one row more.
    let wider = Bounds {
        list_bytes: 2 * bounds.list_bytes,
        text_bytes: 2 * bounds.text_bytes,
        ..bounds
    };
    let again = read(&again, &wider).unwrap();
    assert!(again.malformed.is_empty());
    assert_eq!(again.batch.events(), batch.batch.events());

    let limits = Limits::default();
    let device = Device {
        project: Arc::from("default"),
        apps: None,
        install_id: None,
    };
    let now = UnixTime::from_micros(1_800_000_000_000_000);
    let most_bytes = limits.decompressed_bytes;
    let Ok(checked) = ingest::check_columns(&body, most_bytes, &device, &limits, now) else {
        return;
    };
    let context = Context {
        device: &device,
        rules: &RULES,
        scrubbing: &SCRUBBING,
        recent_stacks: &STACKS,
        recent_names: &NAMES,
        forward: None,
        received_at: now,
        wire_bytes: body.bytes().len(),
    };
    let receipt = checked.into_record(&context, None).receipt;
    let unlisted = receipt.rejected_unlisted.iter().map(|one| one.events);
    let rejected = receipt.rejected.len() as u64 + unlisted.sum::<u64>();
    // Each event has an outcome.
    assert_eq!(receipt.accepted + rejected, events as u64);
});
