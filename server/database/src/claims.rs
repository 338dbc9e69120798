//! Claims of batches: if a device sends one batch to two servers, only one of them stores it.
//!
//! A server claims the batches of a range before it sends them to ClickHouse. Its next claim releases them. A server that makes no claim for
//! two minutes counts as gone, and others may release its claims. All times are PostgreSQL's, so the servers' clocks do not matter.
//!
//! `unjank log drain` drains the log of a lost server. Meanwhile it holds a lease on the log, so that the server claims nothing if it was not lost.
//! The row of the lease stays until the server has read it: the server must compare its ledger with ClickHouse before it claims again.
//!
//! SQLite belongs to one server, which needs no claims.

#[cfg(feature = "model")]
mod model;

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgPool, PgRow};
use uuid::Uuid;

#[cfg(feature = "model")]
pub use self::model::ClaimModel;
use super::Control;
use super::error::ControlError;

/// A batch that a log has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    pub project: String,
    pub batch_id: Uuid,
    /// The log has one half of the batch only.
    pub is_half: bool,
}

/// A batch that was claimed before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    pub project: String,
    pub batch_id: Uuid,
    /// `None`: the halves of the batch are stored instead.
    pub by: Option<Owner>,
}

/// The log of another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub log_id: Uuid,
    pub is_gone: bool,
}

impl Control {
    /// Whether other servers can use this control database as well.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.backend.shared_pool().is_some()
    }

    /// Returns the claims, or `None` if no other server can share the control database.
    #[must_use]
    pub fn claims(&self) -> Option<Claims> {
        let pool = self.backend.shared_pool()?.clone();
        Some(Claims { pool, lease: None })
    }
}

/// The claims of all servers that share a control database. The simulation of the server has a model of them.
pub trait ClaimStore: Clone + Send + Sync + 'static {
    /// Replaces the claims of a log.
    fn replace(
        &self,
        log_id: Uuid,
        claims: &[Claim],
    ) -> impl Future<Output = Result<Claiming, ControlError>> + Send;

    /// Releases the claims of a log whose server is gone. It has no effect if the server is back.
    fn release(&self, log_id: Uuid) -> impl Future<Output = Result<(), ControlError>> + Send;

    /// Takes over a log from its server, unless the server may still be storing batches or another command has the log.
    fn take_over(
        &self,
        log_id: Uuid,
    ) -> impl Future<Output = Result<TakeOver<Self>, ControlError>> + Send;

    /// Renews the lease of [`TakeOver::Taken`] for two minutes. Returns whether it still held.
    fn renew(&self, log_id: Uuid) -> impl Future<Output = Result<bool, ControlError>> + Send;

    /// Ends the lease of [`TakeOver::Taken`]. The server of the log may claim batches again.
    fn hand_back(&self, log_id: Uuid) -> impl Future<Output = Result<(), ControlError>> + Send;

    /// Fails if another process holds the lease on the log, or if the lease of this one has ended. Returns the last lease of another process,
    /// to be forgotten when what it has stored is known.
    fn check_lease(
        &self,
        log_id: Uuid,
    ) -> impl Future<Output = Result<Option<EndedLease>, ControlError>> + Send;

    /// Forgets a lease that has ended. It has no effect if another one has begun since.
    fn forget_lease(
        &self,
        log_id: Uuid,
        ended: EndedLease,
    ) -> impl Future<Output = Result<(), ControlError>> + Send;
}

/// The claims in PostgreSQL.
#[derive(Clone, Debug)]
pub struct Claims {
    pool: PgPool,
    /// The holder of the lease on the log. `None` in a server, which needs no lease on its own log.
    lease: Option<String>,
}

/// The answer to a request for claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claiming {
    /// Everything is claimed but these batches, which others have claimed before.
    Claimed(Vec<Claimed>),
    /// Nothing is claimed: another process has the lease on the log, or had it and the server has not forgotten it yet.
    Leased,
}

/// A lease that has ended: when, in microseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedLease(i64);

/// Whether a command may drain a log in place of its server.
#[derive(Clone, Debug)]
pub enum TakeOver<C = Claims> {
    /// The log is taken over. Only these claims are accepted for the log until the lease ends.
    Taken(C),
    /// The server has made a claim within the last two minutes, at this time in microseconds since the epoch. It may still store its batches.
    ServerSeen(i64),
    /// Another command holds the lease, or was killed less than two minutes ago.
    Held,
}

const SEEN: &str = "
    INSERT INTO claiming_logs (log_id, seen_at) VALUES ($1, clock_timestamp())
    ON CONFLICT (log_id) DO UPDATE SET seen_at = clock_timestamp()";

const GIVE_BACK: &str = "DELETE FROM batch_claims WHERE log_id = $1";

/// Only one server claims or releases at a time, so a claim cannot vanish between CLAIM and CLAIMED.
const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtext('unjank.batch_claims'))";

const CLAIM: &str = "
    INSERT INTO batch_claims (project, batch_id, log_id)
    SELECT project, batch_id, CASE WHEN is_half THEN NULL ELSE $1 END
    FROM unnest($2::text[], $3::bytea[], $4::boolean[]) AS claim (project, batch_id, is_half)
    ON CONFLICT DO NOTHING";

/// Two halves of one batch may go to two servers.
const CLAIMED: &str = "
    SELECT DISTINCT claimed.project, claimed.batch_id, claimed.log_id,
        coalesce(seen_at < clock_timestamp() - INTERVAL '2 minutes', true) AS is_gone
    FROM unnest($2::text[], $3::bytea[], $4::boolean[]) AS claim (project, batch_id, is_half)
    JOIN batch_claims AS claimed
        ON claimed.project = claim.project COLLATE \"C\" AND claimed.batch_id = claim.batch_id
    LEFT JOIN claiming_logs ON claiming_logs.log_id = claimed.log_id
    WHERE claimed.log_id IS DISTINCT FROM $1 AND NOT (is_half AND claimed.log_id IS NULL)";

const RELEASE: &str = "
    DELETE FROM batch_claims WHERE log_id = $1 AND NOT EXISTS (
        SELECT FROM claiming_logs WHERE log_id = $1 AND seen_at >= clock_timestamp() - INTERVAL '2 minutes')";

/// No device retries a batch after 30 days.
const FORGET: &str = "
    DELETE FROM batch_claims WHERE log_id IS NULL AND claimed_at < now() - INTERVAL '30 days'";

const LEASE: &str = "
    SELECT holder, until, until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS holds FROM leases
    WHERE name = $1";

/// The claims until the end of the last lease were those of its holder.
const SERVER_SEEN: &str = "
    SELECT seen FROM (SELECT (extract(epoch FROM seen_at) * 1000000)::bigint AS seen FROM claiming_logs
        WHERE log_id = $1 AND seen_at >= clock_timestamp() - INTERVAL '2 minutes') AS recent
    WHERE seen > coalesce((SELECT until FROM leases WHERE name = $2), 0)";

const TAKE_LEASE: &str = "
    INSERT INTO leases (name, holder, until)
    VALUES ($1, $2, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 120000000)
    ON CONFLICT (name) DO UPDATE SET holder = EXCLUDED.holder, until = EXCLUDED.until";

/// A lease that has ended is not renewed: the server may have made claims since.
const RENEW_LEASE: &str = "
    UPDATE leases SET until = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 120000000
    WHERE name = $1 AND holder = $2 AND until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// The row stays: its time shows which claims were those of the holder, and that the server must learn what the holder has stored.
const END_LEASE: &str = "
    UPDATE leases SET until = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
    WHERE name = $1 AND holder = $2 AND until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

const FORGET_LEASE: &str = "DELETE FROM leases WHERE name = $1 AND until = $2";

/// A lease on a log, which may have ended.
struct Lease {
    holder: String,
    until: i64,
    holds: bool,
}

impl ClaimStore for Claims {
    async fn replace(&self, log_id: Uuid, claims: &[Claim]) -> Result<Claiming, ControlError> {
        let log = log_id;
        let log_id = log.as_bytes().to_vec();
        let projects: Vec<String> = claims.iter().map(|one| one.project.clone()).collect();
        let ids: Vec<Vec<u8>> = claims
            .iter()
            .map(|one| one.batch_id.as_bytes().to_vec())
            .collect();
        let halves: Vec<bool> = claims.iter().map(|one| one.is_half).collect();
        let mut transaction = self.pool.begin().await?;
        sqlx::query(LOCK).execute(&mut *transaction).await?;
        let lease = lease(&mut transaction, log).await?;
        if !may_claim(self.lease.as_deref(), lease.as_ref()) {
            return Ok(Claiming::Leased);
        }
        for sql in [SEEN, GIVE_BACK] {
            sqlx::query(sql)
                .bind(&log_id)
                .execute(&mut *transaction)
                .await?;
        }
        if halves.contains(&true) {
            sqlx::query(FORGET).execute(&mut *transaction).await?;
        }
        sqlx::query(CLAIM)
            .bind(&log_id)
            .bind(&projects)
            .bind(&ids)
            .bind(&halves)
            .execute(&mut *transaction)
            .await?;
        let claimed = sqlx::query(CLAIMED)
            .bind(&log_id)
            .bind(&projects)
            .bind(&ids)
            .bind(&halves)
            .fetch_all(&mut *transaction)
            .await?;
        transaction.commit().await?;
        let claimed: Result<_, ControlError> = claimed.iter().map(read).collect();
        Ok(Claiming::Claimed(claimed?))
    }

    async fn release(&self, log_id: Uuid) -> Result<(), ControlError> {
        let log_id = log_id.as_bytes().to_vec();
        let mut transaction = self.pool.begin().await?;
        sqlx::query(LOCK).execute(&mut *transaction).await?;
        sqlx::query(RELEASE)
            .bind(log_id)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(())
    }

    async fn take_over(&self, log_id: Uuid) -> Result<TakeOver<Self>, ControlError> {
        let name = lease_name(log_id);
        let mut transaction = self.pool.begin().await?;
        sqlx::query(LOCK).execute(&mut *transaction).await?;
        let lease = lease(&mut transaction, log_id).await?;
        if lease.is_some_and(|lease| lease.holds) {
            return Ok(TakeOver::Held);
        }
        let seen = sqlx::query(SERVER_SEEN)
            .bind(log_id.as_bytes().to_vec())
            .bind(&name)
            .fetch_optional(&mut *transaction)
            .await?;
        if let Some(row) = seen {
            return Ok(TakeOver::ServerSeen(row.try_get("seen")?));
        }
        let holder = Uuid::new_v4().to_string();
        sqlx::query(TAKE_LEASE)
            .bind(&name)
            .bind(&holder)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(TakeOver::Taken(Self {
            pool: self.pool.clone(),
            lease: Some(holder),
        }))
    }

    async fn renew(&self, log_id: Uuid) -> Result<bool, ControlError> {
        self.change_lease(RENEW_LEASE, log_id).await
    }

    async fn hand_back(&self, log_id: Uuid) -> Result<(), ControlError> {
        self.change_lease(END_LEASE, log_id).await?;
        Ok(())
    }

    async fn check_lease(&self, log_id: Uuid) -> Result<Option<EndedLease>, ControlError> {
        let mut connection = self.pool.acquire().await?;
        let lease = lease(&mut connection, log_id).await?;
        check(self.lease.as_deref(), lease.as_ref())
    }

    async fn forget_lease(&self, log_id: Uuid, ended: EndedLease) -> Result<(), ControlError> {
        sqlx::query(FORGET_LEASE)
            .bind(lease_name(log_id))
            .bind(ended.0)
            .execute(&self.pool)
            .await?;
        Ok(())
    }
}

impl Claims {
    async fn change_lease(&self, sql: &'static str, log_id: Uuid) -> Result<bool, ControlError> {
        let changed = sqlx::query(sql)
            .bind(lease_name(log_id))
            .bind(self.lease.as_deref())
            .execute(&self.pool)
            .await?;
        Ok(changed.rows_affected() > 0)
    }
}

/// Whether a lease on a log lets a process claim batches of the log. `own` is the holder of the lease of the process, if it has one.
fn may_claim(own: Option<&str>, lease: Option<&Lease>) -> bool {
    match (own, lease) {
        (None, None) => true,
        (Some(own), Some(lease)) => lease.holds && lease.holder == own,
        _ => false,
    }
}

/// See [`ClaimStore::check_lease`].
fn check(own: Option<&str>, lease: Option<&Lease>) -> Result<Option<EndedLease>, ControlError> {
    if may_claim(own, lease) {
        return Ok(None);
    }
    let why = match (own, lease) {
        (None, Some(lease)) if !lease.holds => return Ok(Some(EndedLease(lease.until))),
        (None, _) => "`unjank log drain` is draining a copy of this log; wait until it has ended",
        (Some(_), _) => "the lease on this log has ended",
    };
    Err(ControlError::Invalid(why.to_owned()))
}

fn lease_name(log_id: Uuid) -> String {
    format!("drain of log {log_id}")
}

/// Returns the last lease on a log.
async fn lease(connection: &mut PgConnection, log_id: Uuid) -> Result<Option<Lease>, ControlError> {
    let row = sqlx::query(LEASE)
        .bind(lease_name(log_id))
        .fetch_optional(connection)
        .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    Ok(Some(Lease {
        holder: row.try_get("holder")?,
        until: row.try_get("until")?,
        holds: row.try_get("holds")?,
    }))
}

fn read(row: &PgRow) -> Result<Claimed, ControlError> {
    let by = match row.try_get::<Option<Vec<u8>>, _>("log_id")? {
        Some(log_id) => Some(Owner {
            log_id: id(&log_id)?,
            is_gone: row.try_get("is_gone")?,
        }),
        None => None,
    };
    Ok(Claimed {
        project: row.try_get("project")?,
        batch_id: id(&row.try_get::<Vec<u8>, _>("batch_id")?)?,
        by,
    })
}

fn id(bytes: &[u8]) -> Result<Uuid, ControlError> {
    Uuid::from_slice(bytes)
        .map_err(|_| ControlError::Unavailable("a claim has an invalid id".to_owned()))
}
