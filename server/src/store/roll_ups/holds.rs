//! Holds: while a rebuild replaces a month of a roll-up, no fold may add to that month.
//!
//! A hold is a row of `rollup_holds`. Each statement of a fold reads that table first and fails if its month is held; the writer
//! then retries. A hold expires unless it is renewed, so a killed rebuild blocks folds for at most 30 s. All times are
//! ClickHouse's, so the servers' clocks do not matter.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use tokio::time::sleep;
use uuid::Uuid;

use crate::store::clickhouse::{ClickHouse, Failure};
use crate::store::raw_tables::Month;

const WAITS: &str = "this month of the roll-up is being rebuilt; the fold will be retried";
/// The claim that makes a rebuild exclusive.
const LOCK: (&str, Month) = ("", 0);
/// How often running folds are polled.
const LOOK: Duration = Duration::from_millis(50);
/// Maximum time to wait for running folds.
const PATIENCE: Duration = Duration::from_secs(600);

/// Whether a statement failed because of a hold.
pub(crate) fn is_held(failure: &Failure) -> bool {
    matches!(failure, Failure::Later(text) if text.contains(WAITS))
}

/// Returns an SQL condition that fails the whole statement before it reads any row, if one of the tables is held in one of the
/// months (`None`: in any month).
pub(super) fn unless_held(
    database: &str,
    targets: &[&str],
    months: Option<&BTreeSet<Month>>,
) -> String {
    let targets: Vec<String> = targets.iter().map(|name| format!("'{name}'")).collect();
    let months = months.map_or(String::new(), |months| {
        let months: Vec<String> = months.iter().map(ToString::to_string).collect();
        format!(" AND month IN ({})", months.join(", "))
    });
    format!(
        "(SELECT throwIf(count() > 0, '{WAITS}') FROM `{database}`.rollup_holds FINAL \
         WHERE target IN ({}){months} AND expires_at > now64(3)) = 0",
        targets.join(", ")
    )
}

/// The owner of holds: a rebuild.
#[derive(Clone)]
pub(crate) struct Holder {
    pub(crate) clickhouse: ClickHouse,
    pub(crate) id: Uuid,
    /// How long a claim lasts unless it is renewed.
    pub(crate) life: Duration,
}

impl Holder {
    /// Claims the exclusive lock, or fails if another rebuild is running.
    pub(crate) async fn lock(&self) -> Result<(), Failure> {
        self.claim(LOCK.0, LOCK.1).await?;
        // The claim is visible before the check: of two rebuilds that start together, at least one sees the other.
        let sql = format!(
            "SELECT toString(expires_at) FROM `{}`.rollup_holds FINAL WHERE target = '' AND month = 0 \
             AND holder != '{}' AND expires_at > now64(3) ORDER BY expires_at DESC LIMIT 1",
            self.clickhouse.database(),
            self.id
        );
        let others = self.clickhouse.client()?.query_raw(&sql);
        let Some(until) = others.fetch_optional::<String>().await? else {
            return Ok(());
        };
        self.release(Some(LOCK)).await?;
        Err(Failure::Later(format!(
            "another rebuild of roll-ups is running. If it was killed, retry after {until} (UTC), when its lock expires"
        )))
    }

    /// Holds a month of a table and waits until no fold is adding to it. `through` lists the tables whose folds write to the month.
    pub(crate) async fn hold(
        &self,
        target: &str,
        month: Month,
        through: &[&str],
    ) -> Result<(), Failure> {
        self.claim(target, month).await?;
        let mut waited = Duration::ZERO;
        while self.folds_at_work(through).await? > 0 {
            if waited > PATIENCE {
                return Err(Failure::Later(format!(
                    "a fold into {target} has been running for {} s",
                    PATIENCE.as_secs()
                )));
            }
            sleep(LOOK).await;
            waited += LOOK;
        }
        Ok(())
    }

    /// A statement is listed before it reads the holds. So every fold that has not seen the hold is in this list.
    async fn folds_at_work(&self, through: &[&str]) -> Result<u64, Failure> {
        let database = self.clickhouse.database();
        let into: Vec<String> = through
            .iter()
            .map(|table| format!("position(query, 'INSERT INTO `{database}`.`{table}` ') > 0"))
            .collect();
        let sql = format!(
            "SELECT count() FROM system.processes WHERE startsWith(query_id, 'unjank-') AND ({})",
            into.join(" OR ")
        );
        Ok(self
            .clickhouse
            .client()?
            .query_raw(&sql)
            .fetch_one()
            .await?)
    }

    async fn claim(&self, target: &str, month: Month) -> Result<(), Failure> {
        let sql = format!(
            "INSERT INTO `{}`.rollup_holds (target, month, holder, expires_at) SELECT '{target}', {month}, '{}', {}",
            self.clickhouse.database(),
            self.id,
            self.expiry()
        );
        self.execute(&sql).await
    }

    fn expiry(&self) -> String {
        format!(
            "now64(3) + toIntervalMillisecond({})",
            self.life.as_millis()
        )
    }

    /// Extends the claims that have not expired.
    async fn renew(&self) -> Result<(), Failure> {
        self.change(&self.expiry(), None).await
    }

    /// Releases one claim, or all claims.
    pub(crate) async fn release(&self, claim: Option<(&str, Month)>) -> Result<(), Failure> {
        self.change("now64(3)", claim).await
    }

    async fn change(&self, expiry: &str, claim: Option<(&str, Month)>) -> Result<(), Failure> {
        let only = claim.map_or(String::new(), |(target, month)| {
            format!(" AND target = '{target}' AND month = {month}")
        });
        let sql = format!(
            "INSERT INTO `{0}`.rollup_holds (target, month, holder, expires_at) SELECT target, month, holder, {expiry} \
             FROM `{0}`.rollup_holds FINAL WHERE holder = '{1}' AND expires_at > now64(3){only}",
            self.clickhouse.database(),
            self.id
        );
        self.execute(&sql).await
    }

    async fn execute(&self, sql: &str) -> Result<(), Failure> {
        let query = self.clickhouse.client()?.query_raw(sql);
        let query = query.with_setting("async_insert", "0");
        Ok(query.execute().await?)
    }

    /// Whether the lock and the hold have not expired.
    pub(crate) async fn lasts(&self, (target, month): (&str, Month)) -> Result<bool, Failure> {
        let sql = format!(
            "SELECT count() FROM `{}`.rollup_holds FINAL WHERE holder = '{}' AND expires_at > now64(3) \
             AND (target, month) IN (('', 0), ('{target}', {month}))",
            self.clickhouse.database(),
            self.id
        );
        let claims: u64 = self
            .clickhouse
            .client()?
            .query_raw(&sql)
            .fetch_one()
            .await?;
        Ok(claims == 2)
    }

    /// Renews the claims while the work runs.
    pub(crate) async fn during<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let mut work = std::pin::pin!(work);
        loop {
            let renewal = async {
                sleep(self.life / 4).await;
                self.renew().await
            };
            tokio::select! {
                done = &mut work => return done,
                renewed = renewal => if let Err(failure) = renewed {
                    tracing::debug!(%failure, "cannot renew the claims of a rebuild");
                },
            }
        }
    }
}
