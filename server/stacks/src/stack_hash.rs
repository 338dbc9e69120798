//! The identity of a stack: the key under which it is stored. Not to be confused with groups, see `class`.

use unjank_foundation::fingerprint::fingerprint;
use unjank_protocol::Frame;

/// Returns the identity of this exact stack: 0 if there are no frames, otherwise never 0.
///
/// The identity is the [`fingerprint`] of one byte string (the first 8 bytes, big-endian, of the SHA-256 of its length
/// as a little-endian u64 followed by the string itself). For each frame, innermost first, the string holds the fields
/// `class`, `module`, `function`, `file` and `build_id`, each as its length in bytes (u32, little-endian) followed by
/// its UTF-8; then `line` (i64, little-endian; values below 1 are encoded as 0, since the wire format drops them),
/// `native` (one byte, 0 or 1); then a byte that encodes which of the next two follow (1: `offset`, 2: `column`, 3: both); then `offset`
/// (u64, little-endian) and `column` (u32, little-endian).
///
/// The encoding must never change, because every later version of the program looks stored rows up by this number.
#[must_use]
pub fn stack_hash(frames: &[Frame<'_>]) -> u64 {
    if frames.is_empty() {
        return 0;
    }
    // Hashes one buffer in one pass: hashing field by field would be dominated by the cost of the calls.
    let mut bytes = Vec::with_capacity(frames.len() * 160);
    for frame in frames {
        for text in [
            &frame.class,
            &frame.module,
            &frame.function,
            &frame.file,
            &frame.build_id,
        ] {
            let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes.extend_from_slice(&frame.line.max(0).to_le_bytes());
        bytes.push(u8::from(frame.native));
        bytes.push(u8::from(frame.offset.is_some()) | u8::from(frame.column > 0) << 1);
        if let Some(offset) = frame.offset {
            bytes.extend_from_slice(&offset.to_le_bytes());
        }
        if frame.column > 0 {
            bytes.extend_from_slice(&frame.column.to_le_bytes());
        }
    }
    fingerprint(&[&bytes]).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame<'static> {
        Frame {
            class: "com.example.shop.Cart".into(),
            function: "pay".into(),
            file: "Cart.kt".into(),
            line: 42,
            ..Frame::default()
        }
    }

    #[test]
    fn the_hash_of_a_stack_never_changes() {
        assert_eq!(stack_hash(&[]), 0);
        assert_eq!(stack_hash(&[frame()]), 11_982_097_278_349_539_562);
    }

    #[test]
    fn every_field_affects_the_hash() {
        let variants = [
            Frame {
                class: "com.example.shop.Car".into(),
                function: "tpay".into(),
                ..frame()
            },
            Frame {
                module: "base.apk".into(),
                ..frame()
            },
            Frame {
                file: "Basket.kt".into(),
                ..frame()
            },
            Frame {
                line: 43,
                ..frame()
            },
            Frame {
                native: true,
                ..frame()
            },
            Frame {
                build_id: "ab12".into(),
                ..frame()
            },
            Frame {
                offset: Some(0),
                ..frame()
            },
            Frame {
                column: 7,
                ..frame()
            },
        ];
        let mut hashes: Vec<u64> = variants.map(|variant| stack_hash(&[variant])).to_vec();
        hashes.push(stack_hash(&[frame()]));
        hashes.push(stack_hash(&[frame(), frame()]));
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 10);
    }

    #[test]
    fn all_unknown_lines_hash_the_same() {
        let unknown = [0, -1, -2].map(|line| stack_hash(&[Frame { line, ..frame() }]));
        assert_eq!(unknown, [unknown[0]; 3]);
    }
}
