//! What a thread remembers of names: which share of their spans is kept.

use std::borrow::Cow;

use crate::client::Shared;
use crate::settings::Share;

/// The shares of names this thread asked for lately: matching patterns costs more than a span.
pub(super) struct Rates {
    /// The client and the edition of its settings that they are of.
    of: (u32, u32),
    /// By where the text and the tags are, and how long the text is.
    known: [Option<([usize; 3], Kept)>; Self::SLOTS],
}

/// The share of a name, and what those that are kept carry of it.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    pub(super) share: Share,
    pub(super) sample_rate: f64,
}

impl Kept {
    fn of(shared: &Shared, name: &str, tags: &[&str]) -> Self {
        let settings = shared.settings.load();
        let share = settings.span_share(name, tags);
        Self {
            share,
            sample_rate: settings.sample_rate(share),
        }
    }
}

/// A name: of the program, which is always at the same place, or made at run time.
#[derive(Clone, Copy)]
pub(super) enum Name<'n> {
    OfProgram(&'static str),
    Made(&'n str),
}

impl<'n> Name<'n> {
    #[expect(clippy::ptr_arg, reason = "what counts is which of the two it is")]
    pub(super) fn of(name: &'n Cow<'static, str>) -> Self {
        match name {
            Cow::Borrowed(text) => Self::OfProgram(text),
            Cow::Owned(text) => Self::Made(text),
        }
    }

    fn text(self) -> &'n str {
        match self {
            Self::OfProgram(text) => text,
            Self::Made(text) => text,
        }
    }
}

impl Rates {
    const SLOTS: usize = 64;
    /// Clients are counted from 1.
    pub(super) const NONE: Self = Self {
        of: (0, 0),
        known: [None; Self::SLOTS],
    };

    pub(super) fn share(&mut self, shared: &Shared, name: Name<'_>, tags: &[&str]) -> Kept {
        let Name::OfProgram(text) = name else {
            return Kept::of(shared, name.text(), tags);
        };
        let of = (shared.id, shared.edition());
        if self.of != of {
            *self = Self { of, ..Self::NONE };
        }
        let (place, length) = (text.as_ptr().addr(), text.len());
        // Names of the program stay where they are, so their place names them. One name may stand for functions with other tags.
        let key = [place, length, tags.as_ptr().addr()];
        let slot = (place >> 3 ^ place >> 11 ^ length) % Self::SLOTS;
        match self.known.get_mut(slot) {
            Some(Some((known, kept))) if *known == key => *kept,
            entry => {
                let kept = Kept::of(shared, text, tags);
                if let Some(entry) = entry {
                    *entry = Some((key, kept));
                }
                kept
            }
        }
    }
}
