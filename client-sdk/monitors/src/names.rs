//! Names that apps give: pages, functions, phases, metrics. They are kept in memory, so they are bounded where they come in.

/// The longest name an event may hold, in bytes.
const LONGEST: usize = 1_024;

/// A name as it is kept: at most 1 KiB, cut between characters.
///
/// ```
/// use unjank_monitors::bounded;
///
/// assert_eq!(bounded("CartActivity"), "CartActivity");
/// assert_eq!(bounded(&"é".repeat(600)).len(), 1_024);
/// ```
#[must_use]
pub fn bounded(name: &str) -> &str {
    name.get(..name.floor_char_boundary(LONGEST))
        .unwrap_or(name)
}
