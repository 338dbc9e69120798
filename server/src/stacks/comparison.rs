//! What other rules would change: groups that merge, split, or get another name, and how much is in them.
//!
//! Groups of before and after are joined by the stacks they share. A group that merges and splits at once is in both
//! lists.

use std::collections::HashMap;

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::class::Class;
use super::installs::Installs;

/// How often a stack occurred.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// Janks, each counted by the inverse of its sample rate.
    pub occurrences: f64,
    pub installs: Installs,
}

impl Usage {
    fn join(&mut self, other: &Self) {
        self.occurrences += other.occurrences;
        self.installs.join(&other.installs);
    }
}

/// A group as people see it: named by its stack that occurred most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Group {
    /// As text, since readers of JSON lose the last digits of such a number.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, pattern = "^[0-9]{1,20}$")]
    pub group_id: u64,
    pub title: String,
    pub category: String,
    pub owner: String,
    /// Its stacks were caught in an idle loop and say nothing about a stall.
    pub not_a_cause: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn as_text<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

/// What two groups share.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Part {
    #[serde(flatten)]
    pub group: Group,
    /// Distinct stacks.
    pub stacks: u64,
    /// Janks, each counted by the inverse of its sample rate.
    pub occurrences: f64,
    /// Different installs; exact up to 127, an estimate above.
    pub installs: u64,
}

/// Several groups become one.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Merge {
    /// The group of after, with all that comes into it.
    pub into: Part,
    /// The groups of before, by what of them comes.
    pub from: List<Part>,
}

/// One group becomes several.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Split {
    /// The group of before, with all that was in it.
    pub from: Part,
    /// The groups of after, by what comes into them.
    pub into: List<Part>,
}

/// A group keeps its stacks and gets another title, category or owner.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Move {
    pub from: Group,
    pub into: Part,
}

/// The first of a list, by occurrences, and how long it is.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct List<T> {
    pub total: usize,
    pub top: Vec<T>,
}

/// What would change.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = RulesReport)]
pub struct Report {
    /// Distinct stacks that were compared.
    pub stacks: u64,
    /// Janks with these stacks, each counted by the inverse of its sample rate.
    pub occurrences: f64,
    /// Those of them that get another class in any respect.
    pub changed_stacks: u64,
    pub changed_occurrences: f64,
    /// Groups that stay as they are.
    pub unchanged_groups: usize,
    pub merged: List<Merge>,
    pub split: List<Split>,
    pub renamed: List<Move>,
}

/// All that goes from one group to another.
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

/// The groups of one side.
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

    /// Every id of a flow was added together with its group.
    fn get(&self, id: u64) -> &Group {
        &self.0[&id].1
    }
}

/// Takes stacks in one by one, and keeps what groups share: memory grows with the groups.
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

    /// The report; each of its lists, and lists within, has at most `most` entries.
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

    /// The flows by the group they leave or reach.
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

/// Groups that share stacks with more than one of the other side.
fn several<'s, 'c>(
    sides: &'s HashMap<u64, Vec<&'c (u64, u64)>>,
) -> impl Iterator<Item = (u64, &'s [&'c (u64, u64)])> {
    let several = sides.iter().filter(|(_, ids)| ids.len() > 1);
    several.map(|(id, ids)| (*id, ids.as_slice()))
}

impl<T> List<T> {
    /// The largest first; of equal ones the lower group, so that the same question has the same answer.
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
    fn groups_merge_split_move_and_stay() {
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
    fn another_owner_is_a_change_though_the_group_is_the_same() {
        let (before, mut after) = (class(1, "Cart.pay"), class(1, "Cart.pay"));
        after.owner = "team-orders".to_owned();
        let mut comparison = Comparison::default();
        comparison.add(&before, &after, &usage(1.0, &[1]));
        let report = comparison.report(100);
        assert_eq!((report.renamed.total, report.unchanged_groups), (1, 0));
        assert_eq!(report.renamed.top[0].into.group.owner, "team-orders");
    }

    #[test]
    fn a_group_that_gives_and_takes_is_in_both_lists() {
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
    fn lists_are_cut_and_say_how_long_they_were() {
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
