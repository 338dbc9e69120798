//! Measures the resources that the processes use during a phase.

use std::collections::BTreeMap;

use crate::processes::{Cost, Usage, own_usage, usage};

/// The resource usage of the processes when the phase began.
pub(crate) struct Watch {
    server: Option<(u32, Usage)>,
    engine: Option<(u32, Usage)>,
    own: Option<Usage>,
}

impl Watch {
    pub(crate) fn begin(server: Option<u32>, engine: Option<u32>) -> Self {
        let seen = |pid: u32| usage(pid).map(|usage| (pid, usage));
        Self {
            server: server.and_then(seen),
            engine: engine.and_then(seen),
            own: own_usage(),
        }
    }

    /// Returns the resources used since the phase began. Processes that have ended are omitted.
    pub(crate) fn costs(&self, events: u64) -> BTreeMap<&'static str, Cost> {
        let since = |before: Option<(u32, Usage)>| {
            let (pid, before) = before?;
            Some(Cost::between(before, usage(pid)?, events))
        };
        let own = self
            .own
            .zip(own_usage())
            .map(|(before, after)| Cost::between(before, after, events));
        [
            ("server", since(self.server)),
            ("engine", since(self.engine)),
            ("load test", own),
        ]
        .into_iter()
        .filter_map(|(name, cost)| Some((name, cost?)))
        .collect()
    }
}
