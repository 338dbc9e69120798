//! Claims of batches: if a device sends one batch to two servers, only one of them stores it.
//!
//! A server claims the batches of a range before it sends them to ClickHouse. Its next claim releases them. A server that makes no claim for
//! two minutes counts as gone, and others may release its claims. All times are PostgreSQL's, so the servers' clocks do not matter.
//!
//! SQLite belongs to one server, which needs no claims.

use sqlx::Row;
use sqlx::postgres::{PgPool, PgRow};
use uuid::Uuid;

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
        Some(Claims { pool })
    }
}

/// The claims of all servers that share a control database.
#[derive(Clone, Debug)]
pub struct Claims {
    pool: PgPool,
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

impl Claims {
    /// Replaces the claims of a log. Returns the batches that others have claimed.
    pub async fn replace(
        &self,
        log_id: Uuid,
        claims: &[Claim],
    ) -> Result<Vec<Claimed>, ControlError> {
        let log_id = log_id.as_bytes().to_vec();
        let projects: Vec<String> = claims.iter().map(|one| one.project.clone()).collect();
        let ids: Vec<Vec<u8>> = claims
            .iter()
            .map(|one| one.batch_id.as_bytes().to_vec())
            .collect();
        let halves: Vec<bool> = claims.iter().map(|one| one.is_half).collect();
        let mut transaction = self.pool.begin().await?;
        sqlx::query(LOCK).execute(&mut *transaction).await?;
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
        claimed.iter().map(read).collect()
    }

    /// Releases the claims of a log whose server is gone. It has no effect if the server is back.
    pub async fn release(&self, log_id: Uuid) -> Result<(), ControlError> {
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
