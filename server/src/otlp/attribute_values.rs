//! How values of attributes are read, of resources and of events: the limit of texts, ids, and the sample rate.

use unjank_foundation::ids::id_of;
use unjank_protocol::Text;
use uuid::Uuid;

/// The rate at which the app samples, if its sampler does not write the rate into the trace state. OpenTelemetry has no name for it.
pub(super) const SAMPLE_RATE: &str = "unjank.sample_rate";

/// The most bytes of a text, as the protocol has it. Texts are cut before anything copies them: those of a resource are copied for each event.
pub(super) const TEXT: usize = 1024;

pub(super) fn cut(text: &mut Text<'_>) {
    text.truncate(TEXT);
}

/// A sample rate, or `None` if it is missing. What is no number is `NaN`, with which the event is rejected: a rate of 1 would count wrong.
pub(super) fn sample_rate(text: &str) -> Option<f64> {
    let is_sent = !text.trim().is_empty();
    is_sent.then(|| text.trim().parse().unwrap_or(f64::NAN))
}

/// The id that a text names. A blank text is as good as none.
pub(super) fn id(text: &str) -> Uuid {
    id_of(text).unwrap_or_default()
}
