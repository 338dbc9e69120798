//! Symbol files: whether the stacks that arrive are readable, and whether uploads succeed.

use prometheus::IntCounterVec;

use super::Maker;

/// The outcome of a stack that needs symbols, on its arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackOutcome {
    Readable,
    Missing,
    Mismatched,
}

impl StackOutcome {
    const ALL: [Self; 3] = [Self::Readable, Self::Missing, Self::Mismatched];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Readable => "readable",
            Self::Missing => "missing",
            Self::Mismatched => "mismatched",
        }
    }
}

#[derive(Clone, Debug)]
pub struct SymbolMetrics {
    stacks: IntCounterVec,
    files: IntCounterVec,
}

impl SymbolMetrics {
    pub(super) fn new(make: &Maker) -> Self {
        let metrics = Self {
            stacks: make.counters(
                "unjank_symbols_stacks_total",
                "New stacks that need symbols, by outcome on arrival: readable, missing (there is no symbol file), mismatched (the symbol file \
                 has none of the frames).",
                &["outcome"],
            ),
            files: make.counters(
                "unjank_symbols_files_total",
                "Uploaded symbol files, by outcome: added, refused.",
                &["outcome"],
            ),
        };
        // The counters exist before the first stack and file, because alerts query them.
        for outcome in StackOutcome::ALL {
            metrics.stacks.with_label_values(&[outcome.as_str()]);
        }
        for outcome in ["added", "refused"] {
            metrics.files.with_label_values(&[outcome]);
        }
        metrics
    }

    pub fn count_stack(&self, outcome: StackOutcome) {
        self.stacks.with_label_values(&[outcome.as_str()]).inc();
    }

    pub fn count_file(&self, is_added: bool) {
        let outcome = if is_added { "added" } else { "refused" };
        self.files.with_label_values(&[outcome]).inc();
    }
}
