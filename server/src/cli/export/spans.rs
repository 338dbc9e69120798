//! `unjank export spans`: the spans below the chosen ones as one flame graph.

use anyhow::bail;
use clap::{Args, ValueEnum};

use crate::cli::event_filters::EventFilters;
use crate::cli::output::{Output, OutputArgs};
use crate::cli::{DEFAULT_WAIT, store_in_use};
use crate::config::Shared;
use crate::query::{ChosenSpans, SpanBounds, folded, speedscope};

use super::MOST_SPANS;

/// Spans with what ran inside them, weighted by own time, for flame graphs
///
/// Takes the latest spans that match, with all spans of their traces that ran inside. A span's own time is its duration without that
/// of the spans inside it. Without a filter by name or by `root`, each outermost span of a trace is a tree of its own.
/// Has the 2,000 heaviest paths of names.
#[derive(Args, Debug)]
pub(super) struct SpansArgs {
    /// The output format
    #[arg(long, value_enum, default_value = "folded")]
    format: SpansFormat,

    /// Maximum number of matching spans: the latest ones
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    limit: u64,

    #[command(flatten)]
    events: EventFilters,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SpansFormat {
    /// One line `outermost;…;innermost microseconds` per path of names: flamegraph.pl, inferno, speedscope
    Folded,
    /// A JSON file for www.speedscope.app
    Speedscope,
}

pub(super) async fn run(shared: &Shared, args: &SpansArgs) -> anyhow::Result<()> {
    let now = shared.now();
    let ask = args.events.ask(now)?;
    let output = Output::open(&args.output)?;
    let store = store_in_use(shared, DEFAULT_WAIT).await?;
    let bounds = SpanBounds {
        chosen: args.limit,
        read: MOST_SPANS,
    };
    let found = ChosenSpans::read(&store, args.events.project(), ask, now, bounds).await?;
    if found.chosen.is_empty() {
        bail!("no spans match: check --from, --to, --project and --filter");
    }
    if found.left_out > 0 {
        let out = found.left_out;
        tracing::warn!(
            "the traces of these spans have more than {MOST_SPANS} spans; leaving out {out} of them: set a smaller --limit"
        );
    }
    let stacks = found.stacks();
    let text = match args.format {
        SpansFormat::Folded => folded(stacks.in_micros()),
        SpansFormat::Speedscope => speedscope("spans", stacks.in_millis()).to_string(),
    };
    output.whole(text.as_bytes())
}
