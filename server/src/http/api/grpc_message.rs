//! How gRPC writes one message in a body: with a prefix.

use bytes::Bytes;

use super::problem::Problem;

/// The bytes before a message: whether it is compressed, and its length.
pub(crate) const PREFIX: usize = 5;

/// Returns the only message of a body, and whether it is compressed.
pub(super) fn only_message(mut body: Bytes) -> Result<(Bytes, bool), Problem> {
    let Some((&[compressed, a, b, c, d], message)) = body.split_first_chunk() else {
        return Err(Problem::truncated());
    };
    if message.len() != u32::from_be_bytes([a, b, c, d]) as usize || compressed > 1 {
        return Err(Problem::not_one_message());
    }
    Ok((body.split_off(PREFIX), compressed == 1))
}
