//! A file that an uploader asks to join from chunks.

use serde::{Deserialize, Serialize};
use unjank_database::Actor;

/// A file to join from chunks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AssemblyRequest {
    pub project: String,
    pub actor: Actor,
    /// The SHA-1 of the whole file, in lower-case hexadecimal.
    pub checksum: String,
    pub name: String,
    /// The SHA-1 of each chunk, in order. The chunks are those that the actor has sent.
    pub chunks: Vec<String>,
    /// An id that the uploader names besides those in the file, as a [`SymbolId`](unjank_symbols::SymbolId) writes it.
    pub id: Option<String>,
}

/// The project, the owner of the chunks, and the checksum of the file. A token cannot spoil the upload of another.
pub(super) type Key = (String, String, String);

impl AssemblyRequest {
    pub(super) fn key(&self) -> Key {
        let owner = self.owner().to_owned();
        (self.project.clone(), owner, self.checksum.clone())
    }

    /// The owner of the chunks.
    pub(super) fn owner(&self) -> &str {
        &self.actor.name
    }
}
