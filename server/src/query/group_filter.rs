//! Filters of janks by what people decided about their groups. The control database knows the groups, so the caller looks them up.

use super::InvalidQuery;
use crate::store::reads::Wanted;

/// Whether people work on a group of janks. A group that came back is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupStatus {
    Open,
    Resolved,
    Ignored,
}

/// Selects janks by their groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupFilter {
    Only(Vec<u64>),
    Except(Vec<u64>),
}

impl GroupFilter {
    fn wanted(&self) -> Wanted {
        let texts = |groups: &[u64]| groups.iter().map(u64::to_string).collect();
        match self {
            Self::Only(groups) => Wanted::OneOf(texts(groups)),
            Self::Except(groups) => Wanted::NoneOf(texts(groups)),
        }
    }
}

/// Returns the condition for the groups of a query. A status needs the groups that have it.
pub(super) fn groups_wanted(
    status: Option<GroupStatus>,
    groups: Option<&GroupFilter>,
) -> Result<Option<Wanted>, InvalidQuery> {
    match (status, groups) {
        (Some(_), None) => Err(InvalidQuery(
            "`group_status` is not available here".to_owned(),
        )),
        (_, groups) => Ok(groups.map(GroupFilter::wanted)),
    }
}
