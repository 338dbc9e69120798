//! The claim of a backup to a prefix of a bucket. While its object is there, the prefix belongs to that backup: it alone may upload to it,
//! and delete what it has uploaded. The requests are in `bucket.rs`, the record on this machine is in `place.rs`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The start of the names of the objects.
const NAME: &str = "uploading-";
/// The content of the objects, for people who look into the bucket.
pub(super) const CONTENT: &str = "A backup is being uploaded here, or was killed before its end.\n";

/// A claim, as the staging folder records it until the bucket has the whole set or nothing of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claim {
    pub(super) id: Uuid,
    /// The prefix.
    pub(super) url: String,
    /// The service that has the bucket. `None`: Amazon's.
    #[serde(default)]
    pub(super) endpoint: Option<String>,
    /// The files that may have been uploaded. None, until it is certain that no other backup uses the prefix.
    pub(super) files: Vec<PathBuf>,
}

impl Claim {
    pub(super) fn to(url: &str, endpoint: Option<&str>) -> Self {
        Self {
            id: Uuid::new_v4(),
            url: url.to_owned(),
            endpoint: endpoint.map(str::to_owned),
            files: Vec::new(),
        }
    }

    /// The name of the object, below the prefix.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("{NAME}{}", self.id))
    }
}

/// Whether an object is a claim.
pub(super) fn is_claim(path: &Path) -> bool {
    let name = path.to_str().and_then(|name| name.strip_prefix(NAME));
    name.is_some_and(|id| Uuid::parse_str(id).is_ok())
}
