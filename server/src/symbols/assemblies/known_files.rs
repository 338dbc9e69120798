//! The files of a request that projects have already, or that are being joined. Asks for 32 files at a time: a request may
//! name a thousand.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use unjank_database::{ControlError, SymbolFile};
use unjank_foundation::clock::HOUR;

use super::Assemblies;
use crate::symbols::assemble_error::AssembleError;
use crate::symbols::assembly_request::{AssemblyRequest, Key};

#[derive(Default)]
pub(super) struct KnownFiles {
    working: HashSet<Key>,
    /// By project and checksum.
    stored: HashMap<(String, String), SymbolFile>,
}

impl KnownFiles {
    /// Whether the file was being joined at the time of the question.
    pub(super) fn has_working(&self, key: &Key) -> bool {
        self.working.contains(key)
    }
}

impl Assemblies {
    /// Looks for the files of requests.
    pub(super) async fn known_files(
        &self,
        requests: &[&AssemblyRequest],
    ) -> Result<KnownFiles, AssembleError> {
        let mut files = KnownFiles::default();
        // First, because a file is added before its work ends: it is found either way.
        let wanted = self.not_worked_on(requests, &mut files.working);
        for (project, checksums) in wanted {
            let checksums: Vec<&str> = checksums.into_iter().collect();
            let found = self.control().symbol_files_of(project, &checksums);
            for file in found.await? {
                let key = (project.to_owned(), file.checksum.clone());
                files.stored.insert(key, file);
            }
        }
        Ok(files)
    }

    /// Returns the checksums of the files that are not being joined, by project, and adds the others to `working`.
    fn not_worked_on<'r>(
        &self,
        requests: &[&'r AssemblyRequest],
        working: &mut HashSet<Key>,
    ) -> BTreeMap<&'r str, BTreeSet<&'r str>> {
        let board = self.board();
        let mut others = BTreeMap::<&str, BTreeSet<&str>>::new();
        for request in requests {
            let key = request.key();
            if board.working.contains_key(&key) {
                working.insert(key);
            } else {
                let checksums = others.entry(request.project.as_str()).or_default();
                checksums.insert(request.checksum.as_str());
            }
        }
        others
    }

    /// Returns the file if the project has it. Records the upload, to within an hour, and adds the id that the uploader names.
    pub(super) async fn known(
        &self,
        request: &AssemblyRequest,
        files: &KnownFiles,
    ) -> Result<Option<SymbolFile>, AssembleError> {
        let project = &request.project;
        let key = (project.clone(), request.checksum.clone());
        let Some(file) = files.stored.get(&key).cloned() else {
            return Ok(None);
        };
        let store = self.store();
        if !store.has_file(project, &file.content, file.bytes).await? {
            let why = "its content is not in the symbol store";
            self.joiner.lookups.lose(project, file.id, why).await?;
            return Ok(None);
        }
        let (control, now) = (self.control(), self.clock.now());
        // Builds that change nothing upload the same file again, for as long as it is needed.
        if file.needed_at.unwrap_or(file.uploaded_at) < now.floor(HOUR) {
            let renewed = control.mark_symbol_file_needed(project, file.id, now);
            match renewed.await {
                // Another server has removed it meanwhile.
                Err(ControlError::NotFound) => return Ok(None),
                other => other?,
            }
        }
        if let Some(id) = &request.id {
            let named = control.name_symbol_file((project, &file), id, &request.actor, now);
            named.await?;
        }
        Ok(Some(file))
    }
}
