//! Deletes orphaned contents: a server was killed before it added their file, or after it removed their file.

use std::time::Duration;

use unjank_foundation::clock::UnixTime;

use super::lookups::{LookupError, Lookups};

/// A content without a file is deleted when it was stored so long ago. The file of a younger one may be about to be added.
const ORPHANS_LIVE: Duration = Duration::from_secs(24 * 3600);

impl Lookups {
    /// Deletes the contents that no file has. Returns their number.
    ///
    /// If most contents of a project are without a file, all of them stay: the server was probably started with another control database.
    pub(super) async fn drop_orphaned_contents(&self) -> Result<usize, LookupError> {
        let before = self.clock.now() - ORPHANS_LIVE;
        let mut dropped = 0;
        for project in self.control.projects().await? {
            let stored = self.store.contents_in_folder(&project.id).await?;
            let used = self.control.contents_of_symbol_files(&project.id).await?;
            let all = stored.len();
            let is_orphaned =
                |(content, at): &(String, UnixTime)| *at < before && !used.contains(content);
            let orphaned: Vec<_> = stored.into_iter().filter(is_orphaned).collect();
            if orphaned.len() > all / 2 {
                continue;
            }
            for (content, _) in orphaned {
                let _changing = self.changing.lock().await;
                self.drop_content(&project.id, Some(content)).await?;
                dropped += 1;
            }
        }
        Ok(dropped)
    }
}
