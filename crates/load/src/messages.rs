//! A request as it goes over the wire.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use weft_protocol::InferRequest;

use crate::encoder::Encoder;
use crate::error::LoadError;
use crate::shared_memory::OutputSlots;

/// One request.
pub(crate) enum Messages {
    /// With its tensors, whichever connection it goes over.
    Whole(Bytes),
    /// With the places of its tensors in shared memory, of which those of outputs are the connection's.
    Shared(SharedMessages),
}

/// A request for each slot that its outputs can go to, written when it is first sent.
pub(crate) struct SharedMessages {
    encoder: Arc<Encoder>,
    model: String,
    /// Places of outputs count from the slot's beginning.
    request: InferRequest,
    slots: OutputSlots,
    by_slot: Box<[OnceLock<Bytes>]>,
}

impl Messages {
    /// A request of a model in shared memory, whose outputs' places count from a slot's beginning.
    pub(crate) fn shared(
        encoder: Arc<Encoder>,
        model: &str,
        request: InferRequest,
        slots: OutputSlots,
    ) -> Result<Self, LoadError> {
        let by_slot = std::iter::repeat_with(OnceLock::new).take(slots.count()).collect();
        let messages =
            SharedMessages { encoder, model: model.to_string(), request, slots, by_slot };
        // What cannot be written at all is told here.
        messages.encode(0)?;
        Ok(Messages::Shared(messages))
    }

    /// What a connection with this slot sends.
    pub(crate) fn of_slot(&self, slot: usize) -> Bytes {
        match self {
            Messages::Whole(message) => message.clone(),
            Messages::Shared(shared) => shared.by_slot[slot]
                .get_or_init(|| shared.encode(slot).expect("it differs by a number from the first"))
                .clone(),
        }
    }
}

impl SharedMessages {
    fn encode(&self, slot: usize) -> Result<Bytes, LoadError> {
        let mut request = self.request.clone();
        let start_bytes = self.slots.offset_bytes(slot);
        for range in request.outputs.iter_mut().filter_map(|output| output.shared_memory.as_mut()) {
            range.offset_bytes += start_bytes;
        }
        self.encoder.encode(&self.model, request)
    }
}
