//! How gRPC writes one message in a body: with a prefix.

/// The bytes before a message: whether it is compressed, and its length.
pub const PREFIX: usize = 5;

/// Why a body has no message, or more than one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotOneMessage {
    /// It ends within the prefix.
    CutOff,
    /// Its length differs from the length in its prefix, or the prefix is none.
    OtherLength,
}

/// Returns the only message of a body, and whether it is compressed.
pub fn only_message(body: &[u8]) -> Result<(&[u8], bool), NotOneMessage> {
    let Some((&[compressed, a, b, c, d], message)) = body.split_first_chunk::<PREFIX>() else {
        return Err(NotOneMessage::CutOff);
    };
    if message.len() != u32::from_be_bytes([a, b, c, d]) as usize || compressed > 1 {
        return Err(NotOneMessage::OtherLength);
    }
    Ok((message, compressed == 1))
}
