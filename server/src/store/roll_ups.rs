//! The roll-ups: their definitions, their tables, and the folds that fill them.

mod definitions;
pub(super) mod fold;
pub(super) mod holds;
pub(super) mod marks;

use self::definitions::{DEFINITIONS, Definition};

/// A table of a roll-up: the target of a definition, or the daily table that is filled from it.
#[derive(Clone, Copy)]
pub(super) struct RollUpTable {
    pub(super) name: &'static str,
    pub(super) definition: &'static Definition,
    /// `hour` or `day`: the column with the start of a row's period.
    pub(super) time: &'static str,
}

impl RollUpTable {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        DEFINITIONS.iter().flat_map(|definition| {
            let target = Self {
                name: definition.target,
                definition,
                time: if definition.has_key("hour") {
                    "hour"
                } else {
                    "day"
                },
            };
            let daily = definition.by_day.map(|name| Self {
                name,
                time: "day",
                ..target
            });
            std::iter::once(target).chain(daily)
        })
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::all().find(|table| table.name == name)
    }

    /// Returns the column with a mark's number. In some roll-ups, `source` is a key.
    pub(super) fn mark_column(&self) -> &'static str {
        if self.definition.has_key("source") {
            "mark"
        } else {
            "source"
        }
    }
}
