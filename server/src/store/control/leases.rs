//! Leases: what only one server may do at a time. One that died holds nothing for longer than until its lease ends.

use async_trait::async_trait;

use super::backend::{Backend, Notice, values};
use super::error::ControlError;

const TAKE: &str = "INSERT INTO leases (name, holder, until) VALUES ($1, $2, $4) \
     ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until \
     WHERE leases.until < $3 OR leases.holder = excluded.holder";

#[async_trait]
pub trait Leases: Backend {
    /// Takes or renews a lease until that time. Answers whether `holder` has it.
    async fn take(
        &self,
        name: &str,
        holder: &str,
        now: i64,
        until: i64,
    ) -> Result<bool, ControlError> {
        let mut statements = self.begin().await?;
        let taken = statements
            .execute(TAKE, values![name, holder, now, until])
            .await?;
        statements.commit(Notice::Silent).await?;
        Ok(taken > 0)
    }
}
