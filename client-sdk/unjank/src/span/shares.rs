//! A cache, per thread, of the share of spans that is kept for each name.

use std::borrow::Cow;

use crate::client::Shared;
use crate::sampling::Share;

/// The shares of names that this thread used lately. Matching patterns costs more than a span.
pub(super) struct Rates {
    /// The client and the edition of its settings that the shares were computed from.
    of: (u32, u32),
    /// By the addresses of the text and the tags, and the length of the text.
    known: [Option<([usize; 3], Kept)>; Self::SLOTS],
}

/// The share of a name, and the sample rate that its spans carry.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    pub(super) share: Share,
    pub(super) sample_rate: f64,
}

impl Kept {
    fn new(shared: &Shared, name: &str, tags: &[&str]) -> Self {
        let settings = shared.settings.load();
        let share = settings.span_share(name, tags);
        Self {
            share,
            sample_rate: settings.sample_rate(share),
        }
    }
}

/// A name: a constant of the program, which is always at the same address, or a string built at run time.
#[derive(Clone, Copy)]
pub(super) enum Name<'n> {
    Constant(&'static str),
    Built(&'n str),
}

impl<'n> Name<'n> {
    #[expect(clippy::ptr_arg, reason = "what counts is which of the two it is")]
    pub(super) fn new(name: &'n Cow<'static, str>) -> Self {
        match name {
            Cow::Borrowed(text) => Self::Constant(text),
            Cow::Owned(text) => Self::Built(text),
        }
    }

    fn text(self) -> &'n str {
        match self {
            Self::Constant(text) => text,
            Self::Built(text) => text,
        }
    }
}

impl Rates {
    const SLOTS: usize = 64;
    /// Client ids start at 1, so the first lookup replaces this.
    pub(super) const NONE: Self = Self {
        of: (0, 0),
        known: [None; Self::SLOTS],
    };

    pub(super) fn share(&mut self, shared: &Shared, name: Name<'_>, tags: &[&str]) -> Kept {
        let Name::Constant(text) = name else {
            return Kept::new(shared, name.text(), tags);
        };
        let of = (shared.id, shared.edition());
        if self.of != of {
            *self = Self { of, ..Self::NONE };
        }
        let (place, length) = (text.as_ptr().addr(), text.len());
        // Constants do not move, so the address identifies the name. The same name may belong to functions with other tags.
        let key = [place, length, tags.as_ptr().addr()];
        let slot = (place >> 3 ^ place >> 11 ^ length) % Self::SLOTS;
        match self.known.get_mut(slot) {
            Some(Some((known, kept))) if *known == key => *kept,
            entry => {
                let kept = Kept::new(shared, text, tags);
                if let Some(entry) = entry {
                    *entry = Some((key, kept));
                }
                kept
            }
        }
    }
}
