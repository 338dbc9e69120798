//! Changes texts before they are stored: scrubs private data from every text, and replaces names and stacks above a project's bound by
//! `(other)`. Both are counted for the Ingest health page.
//!
//! A name that was admitted in this hour was scrubbed at that time and is not scrubbed again. Neither is a text that occurred before in the
//! same batch: spans repeat names, threads and the attributes of their resource.

mod batch;

use unjank_protocol::{Attributes, Frame, Resource, Signal, Text};

use super::attribute_names::keep_last_of_each_name;
use super::scrubbing::Scrubbing;
use super::scrubbing::built_in::Kind;
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
    unchanged: Unchanged,
}

/// What a text is. The rules differ, so a text that stays as a name may change as the value of an attribute.
#[derive(Clone, Copy, Hash)]
enum Use<'t> {
    Name(u8),
    Plain,
    /// The value of the attribute with this name.
    Attribute(&'t str),
}

/// Texts that stay as they are, by their hashes. Hashing a text takes a fraction of the time of scrubbing it. A new text takes the place of
/// an older one.
struct Unchanged([u64; PLACES]);

const PLACES: usize = 256;

impl Unchanged {
    fn has(&self, hash: u64) -> bool {
        // 0 is an empty place.
        hash != 0 && self.0.get(Self::place(hash)) == Some(&hash)
    }

    fn add(&mut self, hash: u64) {
        if let Some(place) = self.0.get_mut(Self::place(hash)) {
            *place = hash;
        }
    }

    fn place(hash: u64) -> usize {
        hash as usize % PLACES
    }
}

impl<'f> TextFilter<'f> {
    pub(super) fn new(names: &'f ProjectNames, scrubbing: &'f Scrubbing) -> Self {
        Self {
            names,
            scrubbing,
            signal: Signal::Other,
            changed: Vec::new(),
            unchanged: Unchanged([0; PLACES]),
        }
    }

    pub(super) fn into_changed(self) -> Vec<ChangedTexts> {
        self.changed
    }

    pub(super) fn name(&mut self, dimension: Dimension, name: &mut Text<'_>) {
        if name.is_empty() {
            return;
        }
        let hash = self.names.hash((Use::Name(dimension as u8), name.as_str()));
        if self.unchanged.has(hash) {
            return;
        }
        if self.names.knows(dimension, name) {
            self.unchanged.add(hash);
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
        self.scrub(Use::Plain, text);
    }

    pub(super) fn attributes(&mut self, attributes: &mut Attributes<'_>) {
        let mut has_people = false;
        for (name, value) in &mut attributes.0 {
            self.scrub(Use::Attribute(name), value);
            // The app chooses the names, but those of a map by person are people.
            if name.contains(['@', '%']) {
                self.text(name);
                has_people = true;
            }
        }
        if has_people {
            // All people have the same name now.
            keep_last_of_each_name(attributes);
        }
    }

    fn scrub(&mut self, by: Use<'_>, text: &mut Text<'_>) {
        if text.is_empty() {
            return;
        }
        let hash = self.names.hash((by, text.as_str()));
        if self.unchanged.has(hash) {
            return;
        }
        let scrubbed = match by {
            Use::Attribute(name) => self.scrubbing.attribute(name, text),
            Use::Name(_) | Use::Plain => self.scrubbing.text(text),
        };
        let Some((scrubbed, found)) = scrubbed else {
            self.unchanged.add(hash);
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
    use unjank_protocol::Batch;

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

    fn span(attributes: &str) -> unjank_protocol::Span<'static> {
        let span = format!(
            r#"{{"trace_id":"5b8aa5a2d2c872e8321cf37308d69df2","span_id":"051581bf3cb55c13","name":"tap","thread":"main",
            "start":"2026-11-20T12:00:00Z","duration_us":1,"attributes":{attributes}}}"#
        );
        serde_json::from_str(span.leak()).unwrap()
    }

    #[test]
    fn people_in_the_names_of_attributes_become_one_attribute() {
        let (names, shop) = (RecentNames::new(10), Arc::from("shop"));
        let attributes =
            r#"{"bob@example.com":"1","load %":"2","ann%40example.com":"3","page":"4"}"#;
        let mut batch = Batch {
            spans: vec![span(attributes)],
            ..Batch::default()
        };
        filtered(&names, &shop, NOW, &mut batch, |_| None);
        let attributes = batch.spans[0].attributes.0.iter();
        let attributes: Vec<_> = attributes
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            attributes,
            [("load %", "2"), ("[email]", "3"), ("page", "4")]
        );
    }

    #[test]
    fn a_text_that_stays_in_one_place_is_scrubbed_in_another_and_each_time() {
        let (names, shop) = (RecentNames::new(10), Arc::from("shop"));
        let attributes =
            r#"{"note":"hunter22","main":"main","password":"hunter22","mail":"bob@example.com"}"#;
        let mut batch = Batch {
            spans: [attributes; 3].map(span).into(),
            ..Batch::default()
        };
        let changed = filtered(&names, &shop, NOW, &mut batch, |_| None);
        for span in &batch.spans {
            let values = span.attributes.0.iter().map(|(_, value)| value.as_str());
            let values: Vec<_> = values.collect();
            assert_eq!(values, ["hunter22", "main", "[secret]", "[email]"]);
        }
        let mut counts: Vec<_> = changed.iter().map(|one| (one.reason, one.texts)).collect();
        counts.sort_unstable();
        assert_eq!(counts, [("email", 3), ("secret", 3)]);
    }
}
