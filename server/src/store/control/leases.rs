//! Leases: who does what only one server may do at a time. One that is not renewed ends by itself.

use async_trait::async_trait;

use super::backend::{Backend, Notice, values};
use super::error::ControlError;

/// Whoever holds it renews it, whoever does not takes it once it is over: one statement decides.
const TAKE: &str = "INSERT INTO leases (name, holder, until) VALUES ($1, $2, $3) \
     ON CONFLICT (name) DO UPDATE SET holder = $2, until = $3 WHERE leases.until < $4 OR leases.holder = $2";
const GIVE_BACK: &str = "DELETE FROM leases WHERE name = $1 AND holder = $2";

#[async_trait]
pub trait Leases: Backend {
    /// Whether `holder` has the lease until `until` now.
    async fn take(
        &self,
        name: &str,
        holder: &str,
        now: i64,
        until: i64,
    ) -> Result<bool, ControlError> {
        let mut statements = self.begin().await?;
        let taken = statements
            .execute(TAKE, values![name, holder, until, now])
            .await?;
        statements.commit(Notice::Silent).await?;
        Ok(taken > 0)
    }

    /// Ends a lease early, so that nobody waits for it.
    async fn give_back(&self, name: &str, holder: &str) -> Result<(), ControlError> {
        let mut statements = self.begin().await?;
        statements.execute(GIVE_BACK, values![name, holder]).await?;
        statements.commit(Notice::Silent).await
    }
}
