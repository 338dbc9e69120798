//! The signature of a webhook, with which a receiver verifies the origin and time of a message.

use aws_lc_rs::hmac;
use unjank_foundation::clock::UnixTime;

/// Seconds since the epoch.
const TIMESTAMP: &str = "x-unjank-timestamp";
/// `v1=` and the HMAC-SHA256 of the timestamp, a dot and the body, in hexadecimal.
const SIGNATURE: &str = "x-unjank-signature";

pub(super) fn headers(key: &str, now: UnixTime, body: &[u8]) -> [(&'static str, String); 2] {
    let timestamp = now.as_secs().to_string();
    let mut signing = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()));
    signing.update(timestamp.as_bytes());
    signing.update(b".");
    signing.update(body);
    let tag = hex(signing.sign().as_ref());
    [(TIMESTAMP, timestamp), (SIGNATURE, format!("v1={tag}"))]
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_openssl() {
        // printf '1795176000.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef
        let [timestamp, signature] = headers(
            "0123456789abcdef",
            UnixTime::from_micros(1_795_176_000_500_000),
            b"{\"a\":1}",
        );
        assert_eq!(timestamp.1, "1795176000");
        assert_eq!(
            signature.1,
            "v1=02db384c751d3978e59d1d473c58ae53c7663170610b49e272913f354dff11bd"
        );
    }
}
