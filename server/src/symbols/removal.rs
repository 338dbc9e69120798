//! Removes symbol files, and their contents from the store.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::time::timeout;
use unjank_database::{Actor, ControlError};
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::lookups::{LookupError, Lookups};
use super::store::StoreError;

/// The time limit for deleting a content. Other servers that add files of the project wait meanwhile, at most 15 s.
const DELETE_WITHIN: Duration = Duration::from_secs(10);
/// A content without a file is deleted when it was stored so long ago. The file of a younger one may be about to be added.
const LEFTOVERS_LIVE: Duration = Duration::from_secs(24 * 3600);

impl Lookups {
    /// Removes a file whose content is lost, so that it can be uploaded again.
    pub(super) async fn lose(
        &self,
        project: &str,
        file: Uuid,
        why: &str,
    ) -> Result<(), LookupError> {
        // Of a store that cannot be used, it is unknown what is lost.
        self.store.check().await?;
        tracing::error!(project, %file, why, "a symbol file is lost: upload it again");
        let removed = self.remove(project, file, &Actor::system("symbols")).await;
        match removed {
            // Another server was first.
            Err(LookupError::Control(ControlError::NotFound)) => Ok(()),
            other => other,
        }
    }

    /// Removes a file, and its content if no other file has the same.
    pub(super) async fn remove(
        &self,
        project: &str,
        file: Uuid,
        actor: &Actor,
    ) -> Result<(), LookupError> {
        let _changing = self.changing.lock().await;
        let now = self.clock.now();
        let removed = self.control.remove_symbol_file(project, file, actor, now);
        self.drop_content(project, removed.await?).await
    }

    /// Removes a file that was neither uploaded nor used since `before`. [`ControlError::NotFound`]: there is no such file any longer.
    pub(super) async fn remove_unused(
        &self,
        project: &str,
        (file, before): (Uuid, UnixTime),
        actor: &Actor,
    ) -> Result<(), LookupError> {
        let _changing = self.changing.lock().await;
        let now = self.clock.now();
        let removed = self
            .control
            .remove_unused_symbol_file(project, (file, before), actor, now);
        self.drop_content(project, removed.await?).await
    }

    /// Deletes the contents that no file has: a server was killed before it added the file, or after it removed the file. Returns their number.
    ///
    /// If most contents of a project are without a file, all of them stay: the server was probably started with another control database.
    pub(super) async fn drop_leftovers(&self) -> Result<usize, LookupError> {
        let before = self.clock.now() - LEFTOVERS_LIVE;
        let mut dropped = 0;
        for project in self.control.projects().await? {
            let stored = self.store.contents_in_folder(&project.id).await?;
            let used = self.control.contents_of_symbol_files(&project.id).await?;
            let all = stored.len();
            let is_leftover =
                |(content, at): &(String, UnixTime)| *at < before && !used.contains(content);
            let leftovers: Vec<_> = stored.into_iter().filter(is_leftover).collect();
            if leftovers.len() > all / 2 {
                continue;
            }
            for (content, _) in leftovers {
                let _changing = self.changing.lock().await;
                self.drop_content(&project.id, Some(content)).await?;
                dropped += 1;
            }
        }
        Ok(dropped)
    }

    /// Deletes the content of a removed file, unless another server has added a file with this content meanwhile.
    async fn drop_content(
        &self,
        project: &str,
        content: Option<String>,
    ) -> Result<(), LookupError> {
        let Some(content) = content else {
            return Ok(());
        };
        let unused = self.control.hold_unused_content(project, &content).await?;
        let Some(_unused) = unused else {
            return Ok(());
        };
        match timeout(DELETE_WITHIN, self.store.drop_file(project, &content)).await {
            Ok(dropped) => Ok(dropped?),
            Err(_) => Err(StoreError::Io(ErrorKind::TimedOut.into()).into()),
        }
    }
}
