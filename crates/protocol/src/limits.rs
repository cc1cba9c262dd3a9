//! What a message may hold at most; beyond it stands a typed refusal.

use crate::error::ProtocolError;

/// Dimensions of one tensor.
pub const MAX_RANK: usize = 32;

/// Inputs or outputs of one message.
pub const MAX_TENSORS: usize = 1024;

/// Refuses more tensors than [`MAX_TENSORS`].
pub(crate) fn check_count(kind: &str, count: usize) -> Result<(), ProtocolError> {
    match count <= MAX_TENSORS {
        true => Ok(()),
        false => Err(ProtocolError::Malformed(format!("more than {MAX_TENSORS} {kind}s"))),
    }
}

/// Refuses more tensors than [`MAX_TENSORS`], and two of one name.
pub(crate) fn check_names<'a>(
    kind: &str,
    names: impl ExactSizeIterator<Item = &'a str>,
) -> Result<(), ProtocolError> {
    check_count(kind, names.len())?;
    if names.len() < 2 {
        return Ok(());
    }
    let mut sorted: Vec<&str> = names.collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(ProtocolError::tensor(pair[0], format!("is given twice as an {kind}"))),
    }
}
