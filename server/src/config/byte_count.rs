//! Numbers of bytes on the command line.

/// Parses a number of bytes.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    bytes_in::<0, { u64::MAX }>(text)
}

/// Parses a number of bytes from `LEAST` to `MOST`.
pub(crate) fn bytes_in<const LEAST: u64, const MOST: u64>(text: &str) -> Result<u64, String> {
    let number: u64 = text
        .parse()
        .map_err(|_| "give the number of bytes without a unit, such as 1073741824".to_owned())?;
    if (LEAST..=MOST).contains(&number) {
        return Ok(number);
    }
    Err(format!("must be from {LEAST} to {MOST} bytes"))
}
