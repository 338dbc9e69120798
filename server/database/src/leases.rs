//! Leases for work that only one server may do at a time. A lease expires unless it is renewed.

use unjank_foundation::clock::UnixTime;

use super::Control;
use super::backend::{Notice, values};
use super::error::ControlError;

/// A single statement renews the lease for its holder, or takes an expired one for another.
const TAKE: &str = "
    INSERT INTO leases (name, holder, until)
    VALUES ($1, $2, $3)
    ON CONFLICT (name) DO UPDATE SET holder = $2, until = $3
    WHERE leases.until < $4
      OR leases.holder = $2";
const RELEASE: &str = "DELETE FROM leases WHERE name = $1 AND holder = $2";

impl Control {
    /// Takes or renews a lease until `until`. Returns whether `holder` now has it.
    pub async fn take_lease(
        &self,
        name: &str,
        holder: &str,
        now: UnixTime,
        until: UnixTime,
    ) -> Result<bool, ControlError> {
        let mut statements = self.begin().await?;
        let taken = statements
            .execute(TAKE, values![name, holder, until, now])
            .await?;
        statements.commit(Notice::Silent).await?;
        Ok(taken > 0)
    }

    /// Releases a lease early, so that other servers need not wait for it to expire.
    pub async fn release_lease(&self, name: &str, holder: &str) -> Result<(), ControlError> {
        let mut statements = self.begin().await?;
        statements.execute(RELEASE, values![name, holder]).await?;
        statements.commit(Notice::Silent).await
    }
}
