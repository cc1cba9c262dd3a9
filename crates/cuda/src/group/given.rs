//! What the launches of a group are given of one member's own: its weights, and their descriptions for the copy engine.

use std::sync::Arc;

use crate::driver::{Context, CudaError, DeviceBuffer, encode_tensor_map};
use crate::launch::DeviceWeights;
use crate::plan::entries::{DESCRIPTION_BYTES, Given};

/// What the launches of one executable are given, in order.
pub(super) struct GivenMemory {
    pub(super) addresses: Vec<u64>,
    _weights: Vec<Arc<DeviceWeights>>,
    _descriptions: DeviceBuffer,
}

impl GivenMemory {
    pub(super) fn new(context: &Arc<Context>, given: &[Given]) -> Result<Self, CudaError> {
        context.bind_to_thread()?;
        let mut bytes = Vec::new();
        for given in given {
            if let Given::Description(weights, map) = given {
                bytes.extend(encode_tensor_map(map, weights.address)?);
            }
        }
        let descriptions = DeviceBuffer::from_bytes(context, &bytes)?;
        let mut next = descriptions.address();
        let address = |given: &Given| match given {
            Given::Weights(weights) => weights.address,
            Given::Description(..) => {
                let address = next;
                next += DESCRIPTION_BYTES as u64;
                address
            }
        };
        Ok(Self {
            addresses: given.iter().map(address).collect(),
            _weights: given.iter().map(|given| given.weights().clone()).collect(),
            _descriptions: descriptions,
        })
    }
}
