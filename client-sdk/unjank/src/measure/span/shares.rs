//! A cache, per thread, of what is known about the spans of a site: the share that is kept.

use smallvec::SmallVec;

use super::new_span::New;
use crate::measure::client::Shared;
use crate::measure::sampling::Share;
use crate::measure::site::Site;

/// The sites that this thread used lately. Matching patterns costs more than a span.
pub(super) struct Rates {
    /// The client and the edition of its settings that the shares were computed from.
    of: (u32, u32),
    known: [Option<Known>; Self::SLOTS],
    /// The site that was looked up last.
    latest: Known,
}

/// A site, and the share of its spans that is kept.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub(super) site: &'static Site,
    pub(super) kept: Kept,
}

/// The share of a name, and the sample rate that its spans carry.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    pub(super) share: Share,
    pub(super) sample_rate: f64,
    /// Whether to ask the app about each span.
    pub(super) asks: bool,
}

impl Kept {
    fn new(shared: &Shared, site: &Site, name: &str) -> Self {
        let settings = shared.settings.load();
        let hooks = &shared.config.hooks;
        let Site { place, tags, .. } = site;
        let share = match hooks.span_tags.as_deref() {
            None => settings.span_share(name, tags),
            Some(patterns) => {
                let texts = [name, place.module(), place.file_and_line().0];
                let own = tags.iter().copied();
                let tags: SmallVec<[&str; 8]> = own.chain(patterns.of(texts)).collect();
                settings.span_share(name, &tags)
            }
        };
        Self {
            share,
            sample_rate: settings.sample_rate(share),
            asks: hooks.should_trace.is_some(),
        }
    }
}

impl Rates {
    const SLOTS: usize = 64;
    /// Client ids start at 1, so the first lookup replaces this.
    pub(super) const NONE: Self = Self {
        of: (0, 0),
        known: [None; Self::SLOTS],
        latest: Known {
            site: &Site::UNKNOWN,
            kept: Kept {
                share: Share::NOTHING,
                sample_rate: 1.0,
                asks: false,
            },
        },
    };

    /// Returns what is known about the spans of a site.
    #[inline]
    pub(super) fn of(&mut self, shared: &Shared, new: &mut New<'_>) -> &Known {
        let of = (shared.id, shared.edition());
        if self.of != of {
            *self = Self { of, ..Self::NONE };
        }
        let slot = new.site.hash() % Self::SLOTS;
        let is_it = |known: &Known| known.site.is(&new.site);
        if new.own_name.is_some() || !self.at(slot).is_some_and(is_it) {
            self.look_up(slot, shared, new);
            return &self.latest;
        }
        self.at(slot).unwrap_or(&self.latest)
    }

    #[inline]
    fn at(&self, slot: usize) -> Option<&Known> {
        self.known.get(slot)?.as_ref()
    }

    /// Looks a span up, and remembers its site. A name that was built at run time is not remembered.
    #[cold]
    fn look_up(&mut self, slot: usize, shared: &Shared, new: &mut New<'_>) {
        let same = self.at(slot).filter(|known| known.site.is(&new.site));
        let known = same.copied().or_else(|| {
            let site = new.site.keep()?;
            let kept = Kept::new(shared, site, site.name);
            Some(Known { site, kept })
        });
        if known.is_none() {
            // The span keeps its name, but not the rest of its site.
            new.own_name.get_or_insert_with(|| new.site.name.to_owned());
        }
        if let Some(place) = self.known.get_mut(slot) {
            *place = known;
        }
        let site = known.map_or(&Site::UNKNOWN, |known| known.site);
        let kept = match (&new.own_name, known) {
            (None, Some(known)) => known.kept,
            _ => Kept::new(shared, &new.site, new.name()),
        };
        self.latest = Known { site, kept };
    }
}
