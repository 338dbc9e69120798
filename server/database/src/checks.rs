//! Validates texts before they are saved.

use super::error::ControlError;

const MAX_NAME_CHARS: usize = 200;
const MAX_EMAIL_BYTES: usize = 254;
const MAX_PAGE: u32 = 1_000;

/// `^[a-z0-9][a-z0-9-]{0,62}$`
pub(super) fn slug(text: &str) -> Result<(), ControlError> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let fits = (1..=63).contains(&bytes.len())
        && plain(bytes[0])
        && bytes.iter().all(|byte| plain(*byte) || *byte == b'-');
    if fits {
        Ok(())
    } else {
        Err(invalid(
            "a project id must be 1 to 63 characters of a-z, 0-9 and -, and must not start with -",
        ))
    }
}

pub(super) fn name(text: &str) -> Result<(), ControlError> {
    let chars = text.chars().count();
    if text.trim().is_empty() || chars > MAX_NAME_CHARS || text.chars().any(char::is_control) {
        return Err(invalid(&format!(
            "a name must be 1 to {MAX_NAME_CHARS} characters without control characters"
        )));
    }
    Ok(())
}

/// Returns the address in lower case, as it is saved: users do not always type theirs in the same way.
pub(super) fn email(text: &str) -> Result<String, ControlError> {
    let text = text.trim().to_lowercase();
    let parts = text.split_once('@');
    let fits = parts.is_some_and(|(who, place)| !who.is_empty() && !place.is_empty())
        && text.len() <= MAX_EMAIL_BYTES
        && !text
            .chars()
            .any(|one| one.is_control() || one.is_whitespace());
    if fits {
        Ok(text)
    } else {
        Err(invalid("not a valid e-mail address"))
    }
}

/// Converts a quota to the type of its column.
pub(super) fn quota(most: Option<u64>) -> Result<Option<i64>, ControlError> {
    most.map(i64::try_from)
        .transpose()
        .map_err(|_| invalid("a quota is too large"))
}

/// Returns the number of rows of a page, within bounds.
pub(super) fn page(limit: u32) -> i64 {
    i64::from(limit.clamp(1, MAX_PAGE))
}

pub(super) fn invalid(reason: &str) -> ControlError {
    ControlError::Invalid(reason.to_owned())
}
