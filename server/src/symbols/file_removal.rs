//! Removes one symbol file at once, with its content: if a user asks for it, if its content is lost, or if nothing uses it any longer.
//! `unused_file_expiry` decides which files expire, and `orphaned_contents` deletes contents that have no file.

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

    /// Deletes the content of a removed file, unless another server has added a file with this content meanwhile.
    pub(super) async fn drop_content(
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
