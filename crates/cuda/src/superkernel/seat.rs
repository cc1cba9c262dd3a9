//! What one tenant has in one context: operands, an entry of its own, and a stream.

use std::sync::Arc;

use super::ProductShape;
use crate::driver::{Context, CudaError, DeviceBuffer, Stream, fill};
use crate::kernels::sgemm::{ENTRY_BYTES, packed};

/// A byte that makes floats which are no numbers.
const SPOILT: u8 = 0xFF;

/// A tenant's operands on the host.
pub(super) struct Operands {
    pub(super) weights: Vec<f32>,
    pub(super) input: Vec<f32>,
}

impl Operands {
    /// Numbers between -1 and 1 that depend on the tenant and on their place alone.
    pub(super) fn random(shape: &ProductShape, tenant: u64) -> Self {
        let numbers = |count: usize, of: u64| -> Vec<f32> {
            let seed = mixed(2 * tenant + of);
            let number = |at: usize| {
                (mixed(seed ^ at as u64) >> 40) as f32 * (2.0 / (1u32 << 24) as f32) - 1.0
            };
            (0..count).map(number).collect()
        };
        Self { weights: numbers(shape.m * shape.k, 0), input: numbers(shape.k * shape.n, 1) }
    }
}

/// A number that looks random and depends on another one alone.
pub(super) fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// A tenant in one context.
pub(super) struct Seat {
    /// It is dropped first, so that memory outlives what was launched.
    pub(super) stream: Stream,
    /// One entry.
    pub(super) table: DeviceBuffer,
    weights: DeviceBuffer,
    /// The same weights in the form that some kernels read, as a model's are packed when it is loaded.
    panels: Option<DeviceBuffer>,
    input: DeviceBuffer,
    output: DeviceBuffer,
}

impl Seat {
    pub(super) fn new(
        context: &Arc<Context>,
        shape: &ProductShape,
        operands: &Operands,
    ) -> Result<Self, CudaError> {
        let floats =
            |values: &[f32]| DeviceBuffer::from_bytes(context, bytemuck::cast_slice(values));
        let mut seat = Self {
            stream: Stream::new(context)?,
            table: DeviceBuffer::zeroed(context, ENTRY_BYTES)?,
            weights: floats(&operands.weights)?,
            panels: packed(&operands.weights, shape).map(|panels| floats(&panels)).transpose()?,
            input: floats(&operands.input)?,
            output: DeviceBuffer::zeroed(context, size_of::<f32>() * shape.m * shape.n)?,
        };
        let entry = entry_bytes(&seat);
        seat.table.write(0, &entry)?;
        Ok(seat)
    }

    /// Puts values into the output that are no numbers.
    pub(super) fn spoil(&self) -> Result<(), CudaError> {
        // SAFETY: the range is the whole output, which outlives the wait.
        unsafe { fill(&self.stream, self.output.address(), SPOILT, self.output.size_bytes()) }?;
        self.stream.synchronize()
    }

    /// The output, which nothing may be writing.
    pub(super) fn read(&self) -> Result<Vec<f32>, CudaError> {
        let mut values = vec![0.0f32; self.output.size_bytes() / size_of::<f32>()];
        self.output.read(0, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }
}

/// The structure `Entry` of the kernels.
pub(super) fn entry_bytes(seat: &Seat) -> [u8; ENTRY_BYTES] {
    let panels = seat.panels.as_ref().map_or(0, DeviceBuffer::address);
    let addresses = [seat.weights.address(), seat.input.address(), seat.output.address(), panels];
    bytemuck::cast(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_have_numbers_of_their_own_between_minus_one_and_one() {
        let shape = ProductShape { m: 30, n: 20, k: 50 };
        let [first, again, other] = [0, 0, 1].map(|tenant| Operands::random(&shape, tenant));
        assert_eq!((first.weights.len(), first.input.len()), (1500, 1000));
        assert_eq!(first.weights, again.weights);
        assert!(first.weights != other.weights && first.input[..] != first.weights[..1000]);
        assert!(first.weights.iter().all(|value| (-1.0..1.0).contains(value)));
        let mean = first.weights.iter().sum::<f32>() / 1500.0;
        assert!(mean.abs() < 0.1, "{mean}");
    }
}
