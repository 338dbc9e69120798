//! Leases for work that only one server may do at a time. A lease expires unless it is renewed.

use unjank_foundation::clock::UnixTime;

use super::Control;
use super::backend::{Notice, values};
use super::error::ControlError;

const HAS: &str = "SELECT name FROM leases WHERE name = $1 AND holder = $2 AND until >= $3";
/// A single statement renews the lease for its holder, or takes an expired one for another.
const TAKE: &str = "
    INSERT INTO leases (name, holder, until)
    VALUES ($1, $2, $3)
    ON CONFLICT (name) DO UPDATE SET holder = $2, until = $3
    WHERE leases.until < $4
      OR leases.holder = $2";
const RELEASE: &str = "DELETE FROM leases WHERE name = $1 AND holder = $2";

impl Control {
    /// Takes or renews a lease until `until`. Returns whether `holder` now has it. A lease that `holder` already has for seven eighths of that time
    /// stays as it is: many holders ask every second or two, and each write would sync the disk.
    pub async fn take_lease(
        &self,
        name: &str,
        holder: &str,
        now: UnixTime,
        until: UnixTime,
    ) -> Result<bool, ControlError> {
        let long_enough = until - until.since(now) / 8;
        let has = self.rows(HAS, values![name, holder, long_enough]).await?;
        if !has.is_empty() {
            return Ok(true);
        }
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
