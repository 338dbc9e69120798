//! Compares two sets of rules: groups that merge, split or get another name, and their volume.
//!
//! Groups before and after the change are matched by the stacks they share. A group that both merges and splits is in
//! both lists.

use std::collections::HashMap;

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::class::Class;
use super::installs::Installs;

/// The occurrences and installs of a stack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// Janks, each weighted by the inverse of its sample rate.
    pub occurrences: f64,
    pub installs: Installs,
}

impl Usage {
    fn join(&mut self, other: &Self) {
        self.occurrences += other.occurrences;
        self.installs.join(&other.installs);
    }
}

/// A group, described by its most frequent stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Group {
    /// As text, because JSON readers lose the last digits of such large numbers.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, pattern = "^[0-9]{1,20}$")]
    pub group_id: u64,
    pub title: String,
    pub category: String,
    pub owner: String,
    /// Whether its stacks were sampled in an idle loop and so do not explain a stall.
    pub not_a_cause: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn as_text<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

/// The part that two groups share.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Part {
    #[serde(flatten)]
    pub group: Group,
    /// Distinct stacks.
    pub stacks: u64,
    /// Janks, each weighted by the inverse of its sample rate.
    pub occurrences: f64,
    /// Distinct installs: exact up to 127, an estimate above.
    pub installs: u64,
}

/// Several groups that become one.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Merge {
    /// The group after the change, with its full volume.
    pub into: Part,
    /// The groups before the change, ordered by the volume they contribute.
    pub from: List<Part>,
}

/// A group that becomes several.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Split {
    /// The group before the change, with its full volume.
    pub from: Part,
    /// The groups after the change, ordered by the volume they receive.
    pub into: List<Part>,
}

/// A group that keeps its stacks and gets another title, category or owner.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Move {
    pub from: Group,
    pub into: Part,
}

/// The top entries of a list by occurrences, and its total length.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct List<T> {
    pub total: usize,
    pub top: Vec<T>,
}

/// The effect of a change of the rules.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = RulesReport)]
pub struct Report {
    /// Distinct stacks compared.
    pub stacks: u64,
    /// Janks with these stacks, each weighted by the inverse of its sample rate.
    pub occurrences: f64,
    /// Stacks whose class changes in any respect.
    pub changed_stacks: u64,
    pub changed_occurrences: f64,
    /// Groups that do not change.
    pub unchanged_groups: usize,
    pub merged: List<Merge>,
    pub split: List<Split>,
    pub renamed: List<Move>,
}

/// The stacks that go from one group to another, with their volume.
#[derive(Default)]
struct Flow {
    stacks: u64,
    usage: Usage,
    changed: bool,
}

impl Flow {
    fn join(&mut self, other: &Self) {
        self.stacks += other.stacks;
        self.usage.join(&other.usage);
        self.changed |= other.changed;
    }

    fn part(&self, group: &Group) -> Part {
        Part {
            group: group.clone(),
            stacks: self.stacks,
            occurrences: self.usage.occurrences,
            installs: self.usage.installs.count(),
        }
    }
}

/// The groups before or after the change.
#[derive(Default)]
struct Groups(HashMap<u64, (f64, Group)>);

impl Groups {
    fn add(&mut self, class: &Class, occurrences: f64) {
        let known = self.0.get(&class.group_id);
        if known.is_some_and(|(most, _)| *most >= occurrences) {
            return;
        }
        let group = Group {
            group_id: class.group_id,
            title: class.title.clone(),
            category: class.category.clone(),
            owner: class.owner.clone(),
            not_a_cause: class.not_a_cause,
        };
        self.0.insert(class.group_id, (occurrences, group));
    }

    /// Panics if the group is unknown. Every id in a flow was added together with its group.
    fn get(&self, id: u64) -> &Group {
        &self.0[&id].1
    }
}

/// Accumulates stacks one at a time into flows between groups. Memory grows with the number of groups, not stacks.
#[derive(Default)]
pub struct Comparison {
    before: Groups,
    after: Groups,
    flows: HashMap<(u64, u64), Flow>,
    changed_stacks: u64,
    changed_occurrences: f64,
}

impl Comparison {
    pub fn add(&mut self, before: &Class, after: &Class, usage: &Usage) {
        let changed = before != after;
        if changed {
            self.changed_stacks += 1;
            self.changed_occurrences += usage.occurrences;
        }
        self.before.add(before, usage.occurrences);
        self.after.add(after, usage.occurrences);
        let ids = (before.group_id, after.group_id);
        let flow = self.flows.entry(ids).or_default();
        flow.stacks += 1;
        flow.usage.join(usage);
        flow.changed |= changed;
    }

    /// Returns the report. Each of its lists, including nested ones, has at most `most` entries.
    #[must_use]
    pub fn report(&self, most: usize) -> Report {
        let by_before = self.sides(|(before, _)| before);
        let by_after = self.sides(|(_, after)| after);
        let alone = |id: &(u64, u64)| by_before[&id.0].len() == 1 && by_after[&id.1].len() == 1;
        let (changed, unchanged): (Vec<_>, Vec<_>) = (self.flows.iter())
            .filter(|(id, _)| alone(id))
            .partition(|(_, flow)| flow.changed);
        let renamed = changed.into_iter().map(|(id, flow)| Move {
            from: self.before.get(id.0).clone(),
            into: flow.part(self.after.get(id.1)),
        });
        let merged = several(&by_after).map(|(id, ids)| Merge {
            into: self.sum(ids).part(self.after.get(id)),
            from: self.parts(ids, most, |(before, _)| self.before.get(before)),
        });
        let split = several(&by_before).map(|(id, ids)| Split {
            from: self.sum(ids).part(self.before.get(id)),
            into: self.parts(ids, most, |(_, after)| self.after.get(after)),
        });
        let all = self.sum(self.flows.keys().collect::<Vec<_>>().as_slice());
        Report {
            stacks: all.stacks,
            occurrences: all.usage.occurrences,
            changed_stacks: self.changed_stacks,
            changed_occurrences: self.changed_occurrences,
            unchanged_groups: unchanged.len(),
            merged: List::top(merged, most, |merge| &merge.into),
            split: List::top(split, most, |split| &split.from),
            renamed: List::top(renamed, most, |renamed| &renamed.into),
        }
    }

    /// Groups the flows by their source or target group.
    fn sides(&self, side: impl Fn((u64, u64)) -> u64) -> HashMap<u64, Vec<&(u64, u64)>> {
        let mut sides: HashMap<u64, Vec<_>> = HashMap::new();
        for id in self.flows.keys() {
            sides.entry(side(*id)).or_default().push(id);
        }
        sides
    }

    fn sum(&self, ids: &[&(u64, u64)]) -> Flow {
        let mut sum = Flow::default();
        for flow in ids.iter().filter_map(|id| self.flows.get(id)) {
            sum.join(flow);
        }
        sum
    }

    fn parts<'c>(
        &self,
        ids: &[&(u64, u64)],
        most: usize,
        group: impl Fn((u64, u64)) -> &'c Group,
    ) -> List<Part> {
        let parts = ids
            .iter()
            .filter_map(|id| Some(self.flows.get(id)?.part(group(**id))));
        List::top(parts, most, |part| part)
    }
}

/// Returns the groups that share stacks with more than one group of the other side.
fn several<'s, 'c>(
    sides: &'s HashMap<u64, Vec<&'c (u64, u64)>>,
) -> impl Iterator<Item = (u64, &'s [&'c (u64, u64)])> {
    let several = sides.iter().filter(|(_, ids)| ids.len() > 1);
    several.map(|(id, ids)| (*id, ids.as_slice()))
}

impl<T> List<T> {
    /// Sorts by size, largest first, and by group id among equals, so that reports are deterministic.
    fn top(entries: impl Iterator<Item = T>, most: usize, size: impl Fn(&T) -> &Part) -> Self {
        let mut top: Vec<T> = entries.collect();
        let total = top.len();
        top.sort_by(|one, other| {
            let (one, other) = (size(one), size(other));
            let by_occurrences = other.occurrences.total_cmp(&one.occurrences);
            by_occurrences.then(one.group.group_id.cmp(&other.group.group_id))
        });
        top.truncate(most);
        Self { total, top }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(group_id: u64, title: &str) -> Class {
        Class {
            category: String::new(),
            culprit: title.to_owned(),
            owner: String::new(),
            group_id,
            title: title.to_owned(),
            not_a_cause: false,
        }
    }

    fn usage(occurrences: f64, installs: &[u64]) -> Usage {
        Usage {
            occurrences,
            installs: Installs::new(installs.to_vec()),
        }
    }

    fn ids(parts: &List<Part>) -> Vec<u64> {
        parts.top.iter().map(|part| part.group.group_id).collect()
    }

    #[test]
    fn groups_merge_split_and_get_renamed_or_stay_unchanged() {
        let mut comparison = Comparison::default();
        let mut add = |before, after, usage| {
            comparison.add(&class(before, "before"), &class(after, "after"), &usage);
        };
        // 1 and 2 become 10.
        add(1, 10, usage(5.0, &[1, 2]));
        add(2, 10, usage(7.0, &[2, 3]));
        // 3 becomes 11 and 12.
        add(3, 11, usage(1.0, &[1]));
        add(3, 12, usage(2.5, &[1]));
        add(3, 12, usage(2.5, &[4]));
        // 4 becomes 13.
        add(4, 13, usage(1.0, &[1]));
        comparison.add(&class(5, "same"), &class(5, "same"), &usage(9.0, &[1]));
        let report = comparison.report(100);
        assert_eq!((report.stacks, report.changed_stacks), (7, 6));
        assert_eq!(
            (report.occurrences, report.changed_occurrences),
            (28.0, 19.0)
        );
        assert_eq!(report.unchanged_groups, 1);
        let merge = &report.merged.top[0];
        assert_eq!((report.merged.total, merge.into.group.group_id), (1, 10));
        assert_eq!((merge.into.occurrences, merge.into.installs), (12.0, 3));
        assert_eq!(ids(&merge.from), [2, 1]);
        let split = &report.split.top[0];
        assert_eq!((report.split.total, split.from.group.group_id), (1, 3));
        assert_eq!((split.from.stacks, split.from.installs), (3, 2));
        assert_eq!(ids(&split.into), [12, 11]);
        let renamed = &report.renamed.top[0];
        assert_eq!(
            (renamed.from.group_id, renamed.into.group.group_id),
            (4, 13)
        );
        assert_eq!(report.renamed.total, 1);
    }

    #[test]
    fn a_changed_owner_is_reported_though_the_group_is_the_same() {
        let (before, mut after) = (class(1, "Cart.pay"), class(1, "Cart.pay"));
        after.owner = "team-orders".to_owned();
        let mut comparison = Comparison::default();
        comparison.add(&before, &after, &usage(1.0, &[1]));
        let report = comparison.report(100);
        assert_eq!((report.renamed.total, report.unchanged_groups), (1, 0));
        assert_eq!(report.renamed.top[0].into.group.owner, "team-orders");
    }

    #[test]
    fn a_group_that_merges_and_splits_is_in_both_lists() {
        let mut comparison = Comparison::default();
        for (before, after) in [(1, 10), (1, 11), (2, 11)] {
            comparison.add(
                &class(before, "b"),
                &class(after, "a"),
                &usage(1.0, &[before]),
            );
        }
        let report = comparison.report(100);
        assert_eq!(
            (
                report.merged.total,
                report.split.total,
                report.renamed.total
            ),
            (1, 1, 0)
        );
    }

    #[test]
    fn lists_are_truncated_and_keep_their_total() {
        let mut comparison = Comparison::default();
        for group in 1..=5_u32 {
            let usage = usage(f64::from(group), &[1]);
            comparison.add(
                &class(u64::from(group), "b"),
                &class(100 + u64::from(group), "a"),
                &usage,
            );
        }
        let renamed = comparison.report(2).renamed;
        assert_eq!((renamed.total, renamed.top.len()), (5, 2));
        assert_eq!(renamed.top[0].from.group_id, 5);
        let json = serde_json::to_value(&renamed.top[0]).unwrap();
        assert_eq!(json["into"]["group_id"], "105");
    }
}
