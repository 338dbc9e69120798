//! Uploads a set that was made in the staging folder. After a failure, deletes what was uploaded.

use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::bucket::BackupBucket;
use super::claim::Claim;
use super::place::Staging;
use super::{OnProgress, files};

/// Maximum time for deleting from a bucket what an unfinished backup has uploaded, and for ending what is being uploaded.
const CLEAN_UP_WITHIN: Duration = Duration::from_secs(30);
/// The pause between two checks of the free space.
const PAUSE: Duration = Duration::from_secs(2);
pub(super) const INTERRUPTED: &str = "interrupted: nothing was backed up";

/// An upload of a staged set.
pub(super) struct Upload<'u> {
    pub(super) bucket: &'u BackupBucket,
    pub(super) staging: &'u Staging,
    /// Fails if the server needs the space of the staged set.
    pub(super) check_room: &'u dyn Fn() -> anyhow::Result<()>,
    pub(super) report: OnProgress<'u>,
}

impl Upload<'_> {
    /// Uploads the set. If that fails, or if `interrupted` completes first, deletes what was uploaded.
    pub(super) async fn run(&self, mut interrupted: Pin<&mut impl Future>) -> anyhow::Result<()> {
        let mut claim = self.bucket.new_claim();
        self.staging.record(&claim)?;
        let claimed = tokio::select! {
            claimed = self.bucket.claim(&claim) => claimed,
            _ = interrupted.as_mut() => Err(anyhow::anyhow!(INTERRUPTED)),
        };
        let uploaded = match claimed {
            Ok(()) => self.send(&mut claim, interrupted).await,
            Err(error) => Err(error),
        };
        if uploaded.is_ok() {
            // Nothing but the claim may be deleted.
            claim.files.clear();
        }
        let ended = timeout(CLEAN_UP_WITHIN, self.bucket.end(&claim)).await;
        let is_complete = matches!(ended, Ok(Ok(true)));
        if matches!(ended, Ok(Ok(_))) && (is_complete || self.bucket.is_settled()) {
            self.staging.forget(&claim);
        } else {
            let left = match uploaded.is_ok() || is_complete {
                true => "the backup is complete, but its object `uploading-…` is still there",
                false => {
                    "files of this failed backup may be there, or appear later: back up to another prefix"
                }
            };
            tracing::warn!(
                place = self.bucket.url(),
                "{left}. The next backup to this bucket with the same staging folder deletes what is left"
            );
        }
        // If the bucket has stored the description without an answer, the backup has succeeded.
        if is_complete { Ok(()) } else { uploaded }
    }

    /// Uploads the set if the prefix belongs to the claim.
    async fn send(
        &self,
        claim: &mut Claim,
        mut interrupted: Pin<&mut impl Future>,
    ) -> anyhow::Result<()> {
        tokio::select! {
            is_alone = self.bucket.check_claim(claim) => is_alone?,
            _ = interrupted.as_mut() => anyhow::bail!(INTERRUPTED),
        }
        let set = self.staging.set();
        claim.files = files::files_below(&set)?;
        self.staging.record(claim)?;
        let stop = CancellationToken::new();
        let mut upload = pin!(self.bucket.upload(&set, claim, &stop, self.report));
        let reason = tokio::select! {
            uploaded = &mut upload => return uploaded,
            _ = interrupted => anyhow::anyhow!(INTERRUPTED),
            short = self.run_short_of_room() => short,
        };
        // What is being uploaded has to end, so that the bucket keeps no pieces of it.
        stop.cancel();
        match timeout(CLEAN_UP_WITHIN, upload).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(reason),
        }
    }

    /// Waits until the server needs the space of the staged set. Returns the error.
    async fn run_short_of_room(&self) -> anyhow::Error {
        loop {
            sleep(PAUSE).await;
            if let Err(error) = (self.check_room)() {
                return error;
            }
        }
    }
}
