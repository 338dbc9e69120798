//! Whole numbers of one to ten bytes: seven bits a byte, the lowest first. The highest bit of a byte says that another one follows (LEB128).

/// A number of 64 bits takes this many bytes at most.
const MOST_BYTES: u32 = 10;
const MORE: u8 = 0x80;

#[inline]
pub(crate) fn put(out: &mut Vec<u8>, number: u64) {
    let mut rest = number;
    while rest >= u64::from(MORE) {
        out.push(rest.to_le_bytes()[0] | MORE);
        rest >>= 7;
    }
    out.push(rest.to_le_bytes()[0]);
}

/// Takes a number from the front. `None` if the bytes end before it does, or if it has more than 64 bits.
#[inline]
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first()?;
    if *first < MORE {
        *bytes = rest;
        return Some(u64::from(*first));
    }
    take_long(bytes)
}

fn take_long(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..MOST_BYTES {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if place == MOST_BYTES - 1 && *byte > 1 {
            return None;
        }
        number |= u64::from(byte & !MORE) << (7 * place);
        if *byte < MORE {
            return Some(number);
        }
    }
    None
}

/// Makes numbers near zero of either sign small: 0, -1, 1, -2 become 0, 1, 2, 3.
#[inline]
pub(crate) const fn zigzag(number: i64) -> u64 {
    (number.cast_unsigned() << 1) ^ (number >> 63).cast_unsigned()
}

#[inline]
pub(crate) const fn from_zigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_read_back_unchanged(number: u64, shift in 0..64_u32, signed: i64) {
            let number = number >> shift;
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            let mut rest = &*bytes;
            prop_assert_eq!(take(&mut rest), Some(number));
            prop_assert!(rest.is_empty());
            prop_assert_eq!(from_zigzag(zigzag(signed >> shift)), signed >> shift);
        }
    }

    #[test]
    fn numbers_that_end_early_or_are_too_large_are_none() {
        for bytes in [&[][..], &[0x80], &[0xff; 9], &[0xff; 10], &[0x80; 11]] {
            assert_eq!(take(&mut &*bytes), None, "{bytes:x?}");
        }
        let largest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(take(&mut &largest[..]), Some(u64::MAX));
    }
}
