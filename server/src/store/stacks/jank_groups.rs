//! Groups of janks: their titles and stacks.

use crate::store::clickhouse::{ClickHouse, Failure};

impl ClickHouse {
    /// Returns the title of a group that has stacks.
    pub async fn group_title(&self, project: &str, group: u64) -> Result<Option<String>, Failure> {
        let sql = format!(
            "SELECT title FROM `{}`.stack_class_current \
             WHERE project = {{project:String}} AND group_id = {{group:UInt64}} ORDER BY classified_at DESC LIMIT 1",
            self.database()
        );
        let title = (self.question(&sql)?)
            .param("project", project)
            .param("group", group)
            .fetch_optional::<String>()
            .await?;
        Ok(title)
    }

    /// Returns the latest stacks of a group, at most `most`.
    pub async fn stacks_of_group(
        &self,
        project: &str,
        group: u64,
        most: u32,
    ) -> Result<Vec<u64>, Failure> {
        let sql = format!(
            "SELECT stack_hash FROM `{}`.stack_class_current \
             WHERE project = {{project:String}} AND group_id = {{group:UInt64}} \
             ORDER BY classified_at DESC, stack_hash LIMIT {{most:UInt32}}",
            self.database()
        );
        let hashes = (self.question(&sql)?)
            .param("project", project)
            .param("group", group)
            .param("most", most)
            .fetch_all::<u64>()
            .await?;
        Ok(hashes)
    }
}
