//! The groups that stacks belonged to before symbols or rules moved them. Links and incidents that name such a group follow it.

use std::collections::HashMap;

use clickhouse::Row;
use serde::Deserialize;

use super::stored_stacks::NewClass;
use crate::store::clickhouse::{ClickHouse, Failure};

impl ClickHouse {
    /// Remembers the groups that these stacks leave. Call it before the new classes are inserted.
    pub(super) async fn note_former_groups(
        &self,
        project: &str,
        classes: &[NewClass],
    ) -> Result<(), Failure> {
        let database = self.database();
        let hashes: Vec<u64> = classes.iter().map(|class| class.stack_hash).collect();
        let groups: Vec<u64> = classes.iter().map(|class| class.class.group_id).collect();
        let sql = format!(
            "INSERT INTO `{database}`.former_groups \
             SELECT project, group_id, stack_hash, now64(6, 'UTC') FROM `{database}`.stack_class_current \
             WHERE project = {{project:String}} AND stack_hash IN {{hashes:Array(UInt64)}} \
             AND group_id != transform(stack_hash, {{hashes:Array(UInt64)}}, {{groups:Array(UInt64)}}, group_id)"
        );
        (self.client()?.query(&sql))
            .param("project", project)
            .param("hashes", hashes)
            .param("groups", groups)
            .execute()
            .await?;
        Ok(())
    }

    /// For each group that has no stacks left, returns the group to which most of its stacks moved.
    pub async fn moved_groups(
        &self,
        project: &str,
        groups: &[u64],
    ) -> Result<HashMap<u64, u64>, Failure> {
        #[derive(Row, Deserialize)]
        struct Move {
            from: u64,
            to: u64,
        }
        let database = self.database();
        let former = format!(
            "SELECT group_id, stack_hash FROM `{database}`.former_groups \
             WHERE project = {{project:String}} AND group_id IN {{groups:Array(UInt64)}} GROUP BY group_id, stack_hash"
        );
        let sql = format!(
            "SELECT from, argMax(to, stacks) AS to FROM (\
                 SELECT former.group_id AS from, now.group_id AS to, count() AS stacks \
                 FROM ({former}) AS former INNER JOIN (\
                     SELECT stack_hash, group_id FROM `{database}`.stack_class_current \
                     WHERE project = {{project:String}} AND stack_hash IN (SELECT stack_hash FROM ({former}))) AS now \
                 ON former.stack_hash = now.stack_hash GROUP BY from, to) \
             WHERE from NOT IN (\
                 SELECT group_id FROM `{database}`.stack_class_current \
                 WHERE project = {{project:String}} AND group_id IN {{groups:Array(UInt64)}}) \
             GROUP BY from"
        );
        let moves = (self.question(&sql)?)
            .param("project", project)
            .param("groups", groups)
            .fetch_all::<Move>()
            .await?;
        Ok(moves.into_iter().map(|one| (one.from, one.to)).collect())
    }
}
