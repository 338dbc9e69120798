//! Requests of OpenTelemetry, from their bytes to a record. The first byte says what a request contains and how it is written: its highest bit, whether
//! the request is in a message of gRPC.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use unjank_protocol::Limits;
use unjank_server::ingest::{self, Body, Context, Device, Scrubbing};
use unjank_server::otlp::{self, Form, Kind};
use unjank_server::recent::{RecentNames, RecentStacks};
use unjank_foundation::clock::UnixTime;
use unjank_stacks::RuleSet;

static RULES: LazyLock<RuleSet> = LazyLock::new(RuleSet::built_in);
static SCRUBBING: LazyLock<Scrubbing> = LazyLock::new(Scrubbing::default);
static STACKS: LazyLock<RecentStacks> = LazyLock::new(|| RecentStacks::new(1_000));
static NAMES: LazyLock<RecentNames> = LazyLock::new(|| RecentNames::new(1_000));

fuzz_target!(|data: &[u8]| {
    let Some((first, body)) = data.split_first() else {
        return;
    };
    let (is_framed, choice) = (first & 0x80 != 0, first & 0x7f);
    let kind = [Kind::Traces, Kind::Logs, Kind::Metrics][usize::from(choice >> 1) % 3];
    let form = [Form::Protobuf, Form::Json][usize::from(choice & 1)];
    let body = if is_framed {
        let Ok((message, _)) = otlp::only_message(body) else {
            return;
        };
        assert_eq!(message.len() + otlp::PREFIX, body.len());
        message
    } else {
        body
    };
    let limits = Limits::default();
    let body = Body::new(body);
    let Ok(request) = otlp::read(&body, kind, form, limits.events) else {
        return;
    };
    let device = Device {
        project: Arc::from("default"),
        apps: None,
        install_id: None,
    };
    let now = UnixTime::from_micros(1_800_000_000_000_000);
    let size = body.bytes().len();
    let (batches, undecoded) = (request.batches, request.undecoded);
    let events: usize = batches.iter().map(unjank_protocol::Batch::events).sum();
    let rejected = undecoded.len();
    let Ok(checked) = ingest::check_decoded(batches, undecoded, size, &device, &limits, now) else {
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
        wire_bytes: size,
    };
    let prepared = checked.into_record(&context, None);
    let accepted = usize::try_from(prepared.receipt.accepted).unwrap();
    // Each event has an outcome.
    let outcomes = accepted
        + prepared.receipt.rejected.len()
        + prepared
            .receipt
            .rejected_unlisted
            .iter()
            .map(|one| usize::try_from(one.events).unwrap())
            .sum::<usize>();
    assert_eq!(outcomes, events + rejected);
});
