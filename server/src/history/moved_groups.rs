//! Decisions about groups of janks, and comments on them, follow a group that symbols or rules moved to another group.

use unjank_foundation::clock::UnixTime;

use super::Reclassifier;
use crate::store::Failure;

/// The number of groups in one query.
const AT_ONCE: usize = 1_000;

impl Reclassifier {
    /// Moves what people decided about groups that have no stacks left to the groups that have these stacks now. Several servers may do this at
    /// the same time.
    pub(super) async fn move_handling(&self, project: &str) -> Result<(), Failure> {
        let failed = |error: unjank_database::ControlError| Failure::Later(error.to_string());
        let groups = self.control.groups_with_handling(project).await;
        for some in groups.map_err(failed)?.chunks(AT_ONCE) {
            let ids: Vec<u64> = some.iter().map(|(group, _)| *group).collect();
            let moves = self.clickhouse.moved_groups(project, &ids).await?;
            let moved = some
                .iter()
                .filter_map(|(from, latest)| Some((*from, *latest, *moves.get(from)?)));
            let moved: Vec<(u64, UnixTime, u64)> = moved.collect();
            for (from, latest, to) in moved {
                let moved = self
                    .control
                    .move_group_handling(project, (from, latest), to);
                moved.await.map_err(failed)?;
                tracing::info!(
                    project,
                    from,
                    to,
                    "a group of janks has moved with its comments"
                );
            }
        }
        Ok(())
    }
}
