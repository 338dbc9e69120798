//! A quick look at a text, before the patterns are tried.

/// Signs of private data, found in one scan of a text.
pub(super) struct Signs {
    pub(super) at: bool,
    pub(super) query: bool,
    pub(super) digits: bool,
    pub(super) secret: bool,
}

impl Signs {
    pub(super) fn new(text: &str) -> Self {
        let (mut at, mut query, mut assigns, mut digits) = (false, false, false, 0_u32);
        // The lengths of the current and the longest run of letters, digits, `-` and `_`.
        let (mut run, mut longest) = (0_u32, 0_u32);
        for byte in text.bytes() {
            if byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-' {
                run += 1;
                digits += u32::from(byte.is_ascii_digit());
                continue;
            }
            longest = longest.max(run);
            run = 0;
            match byte {
                b'@' | b'%' => at = true,
                b'?' => query = true,
                b'=' | b':' | b' ' => assigns = true,
                _ => {}
            }
        }
        longest = longest.max(run);
        Self {
            at,
            query,
            digits: digits >= 10,
            secret: longest >= 20 || (assigns && text.len() >= 8),
        }
    }

    pub(super) fn any(&self) -> bool {
        self.at || self.query || self.digits || self.secret
    }
}
