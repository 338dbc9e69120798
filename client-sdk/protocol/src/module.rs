//! The programs and libraries that an app has loaded.

use serde::{Deserialize, Serialize};

use crate::Text;
use crate::scalar::scalar;

/// One build of a program, library or script that the app has loaded, or the mapping of an obfuscated app. Frames refer to it by its
/// index in the batch, so that its build id is sent once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Module<'a> {
    /// The file name, such as `libshop.so`, without its path, because folders may name people.
    #[serde(borrow, default)]
    pub name: Text<'a>,
    /// The id of the build, 7 to 128 hexadecimal digits, with or without dashes: the GNU build id of an ELF image, the UUID of a Mach-O
    /// image, GUID and age of a PDB, the debug id of a script, or the id of an R8 mapping.
    #[serde(borrow, default)]
    pub build_id: Text<'a>,
    /// The address in the process at which the image starts, in bytes. Needed only for frames with an `address` instead of an `offset`.
    #[serde(
        default,
        deserialize_with = "scalar",
        skip_serializing_if = "Option::is_none"
    )]
    pub load_address: Option<u64>,
}
