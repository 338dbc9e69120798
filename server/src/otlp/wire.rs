//! The wire format of protobuf, read without copies: a message is a list of numbered fields.

use super::Unreadable;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    /// Text, bytes, a message, or a packed list of numbers.
    Bytes(&'a [u8]),
}

/// The fields of a message, in the order sent. A field may occur several times.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    #[inline]
    fn field(&mut self) -> Result<(u32, Value<'a>), Unreadable> {
        let key = varint(&mut self.rest)?;
        let number = u32::try_from(key >> 3)
            .map_err(|_| Unreadable::proto("a field number is too large"))?;
        if number == 0 {
            return Err(Unreadable::proto("a field has the number 0"));
        }
        let value = match key & 7 {
            0 => Value::Varint(varint(&mut self.rest)?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = varint(&mut self.rest)?;
                let length = usize::try_from(length).map_err(|_| ends_early())?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(Unreadable::proto("a field has an unknown wire type")),
        };
        Ok((number, value))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Unreadable> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(ends_early)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(ends_early)?;
        self.rest = rest;
        Ok(*taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Unreadable>;

    /// After an error there are no more fields.
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Reads a number of one to ten bytes, seven bits each, the lowest first.
#[inline]
pub(super) fn varint(rest: &mut &[u8]) -> Result<u64, Unreadable> {
    // Most are below 128.
    if let Some((byte @ ..0x80, after)) = rest.split_first() {
        *rest = after;
        return Ok(u64::from(*byte));
    }
    let mut number = 0_u64;
    for (index, byte) in rest.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            *rest = rest.get(index + 1..).unwrap_or_default();
            return Ok(number);
        }
    }
    Err(if rest.len() < 10 {
        ends_early()
    } else {
        Unreadable::proto("a number has more than ten bytes")
    })
}

/// A signed number whose lowest bit is its sign.
pub(super) fn zigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

fn ends_early() -> Unreadable {
    Unreadable::proto("it ends early")
}
