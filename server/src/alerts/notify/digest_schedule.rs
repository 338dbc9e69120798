//! Creates the daily digests: one per channel and day, at the channel's hour on the following day.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::interval;
use tokio_util::sync::CancellationToken;
use unjank_database::{Channel, FinishedErasures, NewNotification};
use unjank_foundation::clock::{DAY, HOUR, UnixTime};
use unjank_protocol::Day;

use super::Notifier;
use super::digest::{Digest, digest_of};
use super::settings::ChannelSettings;

const EVERY: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_secs(120);

/// Runs until `shutdown`.
pub async fn schedule_digests(notifier: Arc<Notifier>, shutdown: CancellationToken) {
    let mut every = interval(EVERY);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = every.tick() => {}
        }
        let sent = tokio::select! {
            () = shutdown.cancelled() => return,
            sent = notifier.send_digests() => sent,
        };
        if let Err(error) = sent {
            tracing::warn!(%error, "failed to create the daily digests");
        }
    }
}

impl Notifier {
    async fn send_digests(&self) -> anyhow::Result<()> {
        let now = self.clock.now();
        let due = self.due(now).await?;
        // Without the lease, two servers would still save one message, but both would query it.
        if due.is_empty()
            || !self
                .control
                .take_lease("digests", &self.holder, now, now + LEASE)
                .await?
        {
            return Ok(());
        }
        let day = last_day(now);
        let mut made: Option<(Digest, FinishedErasures)> = None;
        for channel in due {
            let of_project = |made: &(Digest, _)| made.0.project == channel.project;
            let (digest, before) = match made.take().filter(of_project) {
                Some(made) => made,
                None => match self.query_digest(&channel.project, day, now).await {
                    Ok(made) => made,
                    Err(error) => {
                        tracing::warn!(%error, project = channel.project, "failed to query the daily digest of a project");
                        continue;
                    }
                },
            };
            let written = NewNotification {
                project: channel.project.clone(),
                channel: channel.id,
                key: key(&channel, day),
                thread: "digest".to_owned(),
                subject: digest.subject(),
                body: serde_json::json!({"digest": digest}),
            };
            // If it is not saved because an erasure has finished, the next round queries the rows that are left.
            self.control.notify(&written, &before, now).await?;
            made = Some((digest, before));
        }
        Ok(())
    }

    /// Queries the digest of a project. Also returns the erasures that had finished before.
    async fn query_digest(
        &self,
        project: &str,
        day: Day,
        now: UnixTime,
    ) -> anyhow::Result<(Digest, FinishedErasures)> {
        let before = self.control.finished_erasures(project).await?;
        let digest = digest_of(&self.clickhouse, project, day, now).await?;
        Ok((digest, before))
    }

    /// Returns the channels for which yesterday's digest is due and not yet saved. A new channel gets its first digest at its next
    /// digest hour.
    async fn due(&self, now: UnixTime) -> anyhow::Result<Vec<Channel>> {
        let day = last_day(now);
        let mut due = Vec::new();
        for channel in self.control.channels_with_digest().await? {
            let hour = u32::from(ChannelSettings::read(&channel)?.digest_hour);
            let at = UnixTime::from(day) + DAY + HOUR * hour;
            let is_time = now >= at && channel.created_at < at;
            if is_time && !self.control.is_notified(&key(&channel, day)).await? {
                due.push(channel);
            }
        }
        Ok(due)
    }
}

/// Returns the last day that was over at a time.
pub fn last_day(now: UnixTime) -> Day {
    Day::containing((now - DAY).into())
}

fn key(channel: &Channel, day: Day) -> String {
    format!("digest:{}:{day}", channel.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_in_utc() {
        let now = UnixTime::from_micros(1_795_176_000_000_000);
        let day = last_day(now);
        assert_eq!(day.to_string(), "2026-11-19");
        let end = UnixTime::from(day) + DAY;
        assert_eq!(end, UnixTime::from_micros(1_795_132_800_000_000));
        assert_eq!(last_day(end), day);
    }
}
