//! The steps from chunks to a symbol file of a project.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sha1::Digest;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use unjank_database::{ControlError, NewSymbolFile};
use unjank_foundation::clock::Clock;
use unjank_symbols::Found;

use super::MAX_FILE_BYTES;
use super::assemble_error::AssembleError;
use super::assembly_request::AssemblyRequest;
use super::lookups::Lookups;
use super::parser::ParserError;
use super::store::StoreError;
use crate::store::free_bytes;

/// The maximum number of builds of all files of a project. It also limits the number of small files.
const MAX_BUILDS: u64 = 500_000;
/// The maximum length of the name of a build.
const MAX_NAME: usize = 300;
/// The maximum number of times that a content is stored because another server has deleted it.
const ATTEMPTS: usize = 3;
/// The time limit for finding a stored content. Changes to the control database wait meanwhile.
const FIND_WITHIN: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) enum JoinError {
    /// The file is unusable. The text explains the reason to the uploader.
    Refused(String),
    /// Chunks have been deleted in the meantime.
    NoChunks,
    /// The same upload may succeed later.
    Failed(String),
}

impl<E: std::error::Error> From<E> for JoinError {
    fn from(error: E) -> Self {
        Self::Failed(error.to_string())
    }
}

pub(super) struct Joiner {
    pub(super) lookups: Arc<Lookups>,
    pub(super) clock: Clock,
    pub(super) max_project_bytes: u64,
    pub(super) min_free_bytes: u64,
}

impl Joiner {
    /// Checks that the disk has room for uploads: twice what batches need, so that uploads stop before them.
    pub(super) fn check_disk(&self) -> Result<(), AssembleError> {
        let free = free_bytes(self.lookups.folder());
        let wanted = self.min_free_bytes.saturating_mul(2);
        match free.is_none_or(|free| free >= wanted) {
            true => Ok(()),
            false => Err(AssembleError::DiskFull(wanted >> 20)),
        }
    }

    pub(super) async fn join(&self, request: &AssemblyRequest) -> Result<(), JoinError> {
        let lookups = &self.lookups;
        self.check_disk()?;
        let folder = lookups.work_folder()?;
        let path = folder.path().join("file");
        let (content, bytes) = self.write(request, &path).await?;
        let mut found = parsed(lookups.parser.inspect(&path).await)?;
        name_by(&mut found, request.id.as_deref());
        self.check_quota(&request.project, bytes, &found).await?;
        // A file that cannot be converted is refused now, when its uploader can do something about it.
        let project = &request.project;
        if let Some(first) = found.iter().find(|found| found.contents.functions) {
            let out = folder.path().join("lookup");
            parsed(
                lookups
                    .parser
                    .convert((&path, None), first.index, &out)
                    .await,
            )?;
            lookups.keep(project, &content, (first, &out)).await?;
        }
        let new = NewSymbolFile {
            checksum: request.checksum.clone(),
            content,
            name: request.name.clone(),
            bytes,
            found,
        };
        let _changing = lookups.changing.lock().await;
        self.add(request, &new, &path).await
    }

    /// Stores the content of a file and adds the file.
    async fn add(
        &self,
        request: &AssemblyRequest,
        new: &NewSymbolFile,
        path: &Path,
    ) -> Result<(), JoinError> {
        let lookups = &self.lookups;
        let (project, content) = (&request.project, &new.content);
        for _ in 0..ATTEMPTS {
            lookups.store.put_file(project, content, path).await?;
            // A store that does not answer has probably kept what it has just confirmed.
            let is_stored = async {
                let found = lookups.store.has_file(project, content, new.bytes);
                !lookups.control.is_shared()
                    || !matches!(timeout(FIND_WITHIN, found).await, Ok(Ok(false)))
            };
            let (new, now) = (new.clone(), self.clock.now());
            let added =
                lookups
                    .control
                    .add_symbol_file(project, new, &request.actor, now, is_stored);
            match added.await {
                Ok(Some(_)) => return Ok(()),
                // Another server has removed an earlier file with this content, and has just deleted the content.
                Ok(None) => {}
                Err(ControlError::NotFound) => {
                    lookups.store.drop_file(project, content).await?;
                    let reason = format!("there is no project `{project}`, or it is being erased");
                    return Err(JoinError::Refused(reason));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let missing = "the symbol store does not have the content that was just stored";
        Err(JoinError::Failed(missing.to_owned()))
    }

    async fn check_quota(
        &self,
        project: &str,
        bytes: u64,
        found: &[Found],
    ) -> Result<(), JoinError> {
        let used = self.lookups.control.symbol_usage(project).await?;
        let refused = |limit: String, raise: &str| {
            Err(JoinError::Refused(format!(
                "the symbol files of project `{project}` would have more than {limit}. Remove files with `unjank symbols remove`{raise}"
            )))
        };
        if used.bytes.saturating_add(bytes) > self.max_project_bytes {
            let limit = format!("{} MiB", self.max_project_bytes >> 20);
            return refused(limit, ", or raise --symbols-max-bytes of the server");
        }
        let ids: u64 = found.iter().map(|found| found.ids.len() as u64).sum();
        if used.builds.saturating_add(ids) > MAX_BUILDS {
            return refused(format!("{MAX_BUILDS} builds"), "");
        }
        Ok(())
    }

    /// Writes the chunks to a file. Returns the SHA-256 and the size.
    async fn write(
        &self,
        request: &AssemblyRequest,
        path: &Path,
    ) -> Result<(String, u64), JoinError> {
        let mut file = tokio::fs::File::create(path).await?;
        let (mut checksum, mut content) = (sha1::Sha1::new(), sha2::Sha256::new());
        let mut bytes = 0_u64;
        for chunk in &request.chunks {
            let chunk = match self.lookups.store.get_chunk(request.owner(), chunk).await {
                Ok(chunk) => chunk,
                Err(StoreError::Lost(_)) => return Err(JoinError::NoChunks),
                Err(error) => return Err(error.into()),
            };
            bytes += chunk.len() as u64;
            if bytes > MAX_FILE_BYTES {
                return Err(JoinError::Refused(format!(
                    "the file is larger than {} MiB",
                    MAX_FILE_BYTES >> 20
                )));
            }
            checksum.update(&chunk);
            content.update(&chunk);
            file.write_all(&chunk).await?;
        }
        file.flush().await?;
        if format!("{:x}", checksum.finalize()) != request.checksum {
            return Err(JoinError::Refused(
                "the chunks do not make up the file: its SHA-1 differs. Upload it again".to_owned(),
            ));
        }
        Ok((format!("{:x}", content.finalize()), bytes))
    }
}

fn parsed<T>(result: Result<T, ParserError>) -> Result<T, JoinError> {
    result.map_err(|error| match error {
        ParserError::Refused(reason) | ParserError::Unsuitable(reason) => {
            JoinError::Refused(reason)
        }
        error @ (ParserError::Ended(_) | ParserError::Io(_)) => error.into(),
    })
}

/// Puts an id that the uploader names in front, and shortens names. Only files with one build can have such an id, or it would be unclear
/// which build it names.
fn name_by(found: &mut [Found], id: Option<&str>) {
    for one in found.iter_mut() {
        let letters = one.name.chars().filter(|letter| !letter.is_control());
        one.name = letters.take(MAX_NAME).collect();
    }
    if let ([only], Some(id)) = (found, id) {
        only.ids.retain(|known| known != id);
        only.ids.insert(0, id.to_owned());
    }
}
