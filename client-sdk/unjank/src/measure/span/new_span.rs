//! A span that is about to begin.

use super::Open;
use crate::measure::site::Site;

/// A span to begin.
pub(super) struct New<'n> {
    pub(super) site: Site,
    /// The name, if it was built at run time. The name of the site is then empty.
    pub(super) own_name: Option<String>,
    /// The parent, unless it is the span that is open on the thread.
    pub(super) parent: Option<&'n Open>,
    /// Whether the span is detached from the thread at once. The system trace then has no section of the thread for it.
    pub(super) is_detached: bool,
}

impl New<'_> {
    pub(super) fn name(&self) -> &str {
        self.own_name.as_deref().unwrap_or(self.site.name)
    }
}
