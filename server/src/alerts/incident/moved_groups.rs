//! Open incidents follow a group of janks that symbols or rules moved to another group.

use std::collections::{BTreeSet, HashMap};

use unjank_database::{AlertRule, AlertState, Evaluated, GroupMove, JsonText};

use crate::alerts::incident::evaluator::{Evaluator, NotEvaluated};
use crate::alerts::judge::verdict::Group;

/// The dimension of a rule that names groups of janks.
const DIMENSION: &str = "group_id";

impl Evaluator {
    /// Returns the groups of states that have moved since, and where to.
    pub(super) async fn moves(
        &self,
        row: &AlertRule,
        states: &[AlertState],
    ) -> Result<HashMap<u64, u64>, NotEvaluated> {
        let ids = states.iter().filter_map(|state| id_of(&state.group_key));
        let ids: Vec<u64> = ids.collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let moves = self.judge.clickhouse.moved_groups(&row.project, &ids).await;
        moves.map_err(|error| NotEvaluated::Rule(error.to_string()))
    }

    /// Renames the states whose groups have moved since. If the new group has its own incident, the old group's incident ends. The moves
    /// are saved with the evaluation, so that nothing moves if another server has evaluated the rule meanwhile.
    pub(super) async fn follow_moves(
        &self,
        row: &AlertRule,
        states: Vec<AlertState>,
        done: &mut Evaluated,
    ) -> Result<Vec<AlertState>, NotEvaluated> {
        let moves = self.moves(row, &states).await?;
        let (moved, mut states): (Vec<_>, Vec<_>) = (states.into_iter())
            .partition(|state| id_of(&state.group_key).is_some_and(|id| moves.contains_key(&id)));
        let mut taken: BTreeSet<String> = keys(&states).collect();
        for mut state in moved {
            let mut group: Group = state.group_key.read()?;
            let to = id_of(&state.group_key).and_then(|id| moves.get(&id));
            if let Some(to) = to {
                group.insert(DIMENSION.to_owned(), to.to_string());
            }
            let key = JsonText::new(&group);
            let from = std::mem::replace(&mut state.group_key, key);
            if taken.insert(state.group_key.as_str().to_owned()) {
                done.moved.push(GroupMove {
                    rule: row.id,
                    from,
                    to: state.group_key.clone(),
                    incident: state.incident,
                    group,
                });
                states.push(state);
            } else {
                done.resolved.extend(
                    state
                        .incident
                        .zip(Some("its group merged with another that has an incident")),
                );
                done.ok.push(from);
            }
        }
        Ok(states)
    }
}

fn keys(states: &[AlertState]) -> impl Iterator<Item = String> {
    states
        .iter()
        .map(|state| state.group_key.as_str().to_owned())
}

/// The group of janks that a state is about, if the rule distinguishes them.
fn id_of(key: &JsonText) -> Option<u64> {
    let group: Group = key.read().ok()?;
    group.get(DIMENSION)?.parse().ok()
}
