//! Names that apps supply for pages, functions, phases and metrics. They stay in memory, so their length is limited on input.

/// Maximum length of a name in an event, in bytes.
const LONGEST: usize = 1_024;

/// Cuts a name to at most 1 KiB, at a character boundary.
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
