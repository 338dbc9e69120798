//! Changes texts before they are stored: scrubs private data from every text, and replaces names and stacks above a project's bound by
//! `(other)`. Both are counted for the Ingest health page.
//!
//! A name that was admitted in this hour was scrubbed at that time and is not scrubbed again.

use unjank_protocol::{Attributes, Batch, Events, Frame, Resource, Signal, Text, for_each_signal};

use super::jank;
use super::scrubbing::Scrubbing;
use super::scrubbing::built_in::{Found, Kind};
use crate::ingest::event_checks::Event;
use crate::recent::{Dimension, ProjectNames};
use crate::records::Outcome;

/// The name of everything above the bound.
const OTHER: &str = "(other)";

/// Texts of a signal that were changed for one reason.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChangedTexts {
    pub(super) signal: Signal,
    /// `Limited` or `Scrubbed`.
    pub(super) outcome: Outcome,
    pub(super) reason: &'static str,
    pub(super) texts: u32,
}

/// Visits the texts of a batch, changes them, and counts the changes.
pub(super) struct TextFilter<'f> {
    names: &'f ProjectNames,
    scrubbing: &'f Scrubbing,
    /// The signal whose texts are visited.
    signal: Signal,
    changed: Vec<ChangedTexts>,
}

impl<'f> TextFilter<'f> {
    pub(super) fn new(names: &'f ProjectNames, scrubbing: &'f Scrubbing) -> Self {
        Self {
            names,
            scrubbing,
            signal: Signal::Other,
            changed: Vec::new(),
        }
    }

    /// Filters all texts of a batch. `new_stack` returns the fingerprint of a stack that is not stored yet.
    pub(super) fn batch(
        &mut self,
        batch: &mut Batch<'_>,
        new_stack: impl Fn(&[Frame<'_>]) -> Option<u64>,
    ) {
        // Before any text changes: the fingerprint covers the frames as sent.
        let stacks = batch.janks.iter().flat_map(jank::stacks);
        let new_stacks: Vec<Option<u64>> = stacks.map(|frames| new_stack(frames)).collect();
        self.resource(&mut batch.resource);
        for_each_signal!(&mut batch, |signal, events| {
            self.signal = signal;
            for event in Events::as_mut_slice(events) {
                event.filter_texts(self);
            }
        });
        self.signal = Signal::Janks;
        let stacks = batch.janks.iter_mut().flat_map(jank::stacks_mut);
        for (stack, fingerprint) in stacks.zip(new_stacks) {
            self.stack(stack, fingerprint);
        }
    }

    pub(super) fn into_changed(self) -> Vec<ChangedTexts> {
        self.changed
    }

    pub(super) fn name(&mut self, dimension: Dimension, name: &mut Text<'_>) {
        if name.is_empty() || self.names.knows(dimension, name) {
            return;
        }
        self.text(name);
        if !self.admits(dimension, name) {
            *name = Text::from(OTHER);
        }
    }

    /// Whether there is room for a name of a kind. If not, it is counted.
    pub(super) fn admits(&mut self, dimension: Dimension, name: &str) -> bool {
        let is_admitted = self.names.admits(dimension, name);
        if !is_admitted {
            self.count(Outcome::Limited, dimension.as_str());
        }
        is_admitted
    }

    /// Scrubs a text that has no bound.
    pub(super) fn text(&mut self, text: &mut Text<'_>) {
        let scrubbed = self.scrubbing.text(text);
        self.replace(text, scrubbed);
    }

    pub(super) fn attributes(&mut self, attributes: &mut Attributes<'_>) {
        for (name, value) in &mut attributes.0 {
            let scrubbed = self.scrubbing.attribute(name, value);
            self.replace(value, scrubbed);
        }
    }

    fn replace(&mut self, text: &mut Text<'_>, scrubbed: Option<(String, Found)>) {
        let Some((scrubbed, found)) = scrubbed else {
            return;
        };
        *text = Text::from(scrubbed);
        for kind in Kind::ALL.into_iter().filter(|kind| found.has(*kind)) {
            self.count(Outcome::Scrubbed, kind.as_str());
        }
    }

    fn resource(&mut self, resource: &mut Resource<'_>) {
        self.text(&mut resource.user_id);
        for (dimension, name) in [
            (Dimension::App, &mut resource.app_id),
            (Dimension::AppVersion, &mut resource.app_version),
            (Dimension::Channel, &mut resource.channel),
            (Dimension::Mode, &mut resource.mode),
            (Dimension::OsName, &mut resource.os_name),
            (Dimension::OsVersion, &mut resource.os_version),
            (Dimension::DeviceModel, &mut resource.device_model),
            (
                Dimension::DeviceManufacturer,
                &mut resource.device_manufacturer,
            ),
            (Dimension::DeviceClass, &mut resource.device_class),
            (Dimension::Locale, &mut resource.locale),
            (Dimension::Sdk, &mut resource.sdk_name),
            (Dimension::SdkVersion, &mut resource.sdk_version),
        ] {
            self.name(dimension, name);
        }
    }

    fn stack(&mut self, stack: &mut Vec<Frame<'_>>, new: Option<u64>) {
        let Some(fingerprint) = new else { return };
        if self.names.admits_fingerprint(Dimension::Stack, fingerprint) {
            return;
        }
        stack.clear();
        stack.push(Frame {
            function: Text::from(OTHER),
            ..Frame::default()
        });
        self.count(Outcome::Limited, Dimension::Stack.as_str());
    }

    fn count(&mut self, outcome: Outcome, reason: &'static str) {
        let signal = self.signal;
        let same = |one: &&mut ChangedTexts| {
            (one.signal, one.outcome, one.reason) == (signal, outcome, reason)
        };
        match self.changed.iter_mut().find(same) {
            Some(one) => one.texts += 1,
            None => self.changed.push(ChangedTexts {
                signal,
                outcome,
                reason,
                texts: 1,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use unjank_foundation::clock::{HOUR, UnixTime};

    use super::*;
    use crate::recent::RecentNames;

    const NOW: UnixTime = UnixTime::from_micros(1_795_176_000_000_000);

    fn filtered(
        names: &RecentNames,
        project: &Arc<str>,
        received_at: UnixTime,
        batch: &mut Batch<'_>,
        new_stack: impl Fn(&[Frame<'_>]) -> Option<u64>,
    ) -> Vec<ChangedTexts> {
        let scrubbing = Scrubbing::default();
        let names = names.of_project(project, received_at, scrubbing.id());
        let mut filter = TextFilter::new(&names, &scrubbing);
        filter.batch(batch, new_stack);
        filter.into_changed()
    }

    fn page_loads(pages: impl IntoIterator<Item = usize>) -> Batch<'static> {
        let load = |page: usize| {
            let load =
                format!(r#"{{"page":"p{page}","start":"2026-11-20T12:00:00Z","total_ms":1}}"#);
            serde_json::from_str::<unjank_protocol::PageLoad<'_>>(load.leak()).unwrap()
        };
        Batch {
            page_loads: pages.into_iter().map(load).collect(),
            ..Batch::default()
        }
    }

    fn pages(batch: &Batch<'_>) -> Vec<String> {
        let loads = batch.page_loads.iter();
        loads.map(|load| load.page.to_string()).collect()
    }

    #[test]
    fn names_above_the_bound_are_stored_as_other_until_the_next_hour() {
        let (names, shop) = (RecentNames::new(4), Arc::from("shop"));
        let mut batch = page_loads([1, 2, 3, 1, 4]);
        let renamed = filtered(&names, &shop, NOW, &mut batch, |_| None);
        assert_eq!(pages(&batch), ["p1", "p2", OTHER, "p1", OTHER]);
        let expected = ChangedTexts {
            signal: Signal::PageLoads,
            outcome: Outcome::Limited,
            reason: "page",
            texts: 2,
        };
        assert_eq!(renamed, [expected]);
        for (project, at) in [(&Arc::from("other"), NOW), (&shop, NOW + HOUR)] {
            let mut batch = page_loads([3, 4]);
            let renamed = filtered(&names, project, at, &mut batch, |_| None);
            assert_eq!((pages(&batch).len(), renamed.len()), (2, 0));
            assert_eq!(pages(&batch), ["p3", "p4"]);
        }
    }

    #[test]
    fn stacks_above_the_bound_become_one_and_known_ones_stay() {
        let (names, shop) = (RecentNames::new(1), Arc::from("shop"));
        let jank = |function: &'static str| {
            let jank = format!(
                r#"{{"start":"2026-11-20T12:00:00Z","duration_ms":1,"stack":[{{"function":"{function}"}}]}}"#
            );
            serde_json::from_str::<unjank_protocol::Jank<'_>>(jank.leak()).unwrap()
        };
        let mut batch = Batch {
            janks: ["a", "b", "known"].map(jank).into(),
            ..Batch::default()
        };
        let unknown = |frames: &[Frame<'_>]| match frames[0].function.as_str() {
            "known" => None,
            other => Some(other.len() as u64 + u64::from(other.as_bytes()[0])),
        };
        let renamed = filtered(&names, &shop, NOW, &mut batch, unknown);
        let janks = batch.janks.iter();
        let functions: Vec<_> = janks.map(|jank| jank.stack[0].function.as_str()).collect();
        assert_eq!(functions, ["a", OTHER, "known"]);
        assert_eq!((renamed.len(), renamed[0].texts), (1, 1));
    }
}
