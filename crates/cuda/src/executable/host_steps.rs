//! What an executable does on the host between two graphs.

use weft_device::DeviceError;
use weft_ir::{OperatorError, Value};

use super::CudaExecutable;
use crate::driver::{CudaError, copy_to_device, copy_to_host};
use crate::plan::place::Place;
use crate::plan::steps::{DeviceValue, HostStep};
use crate::plan::transfer::{decode, encode};

impl CudaExecutable {
    /// Does what the plan leaves to the host; everything before it in the stream has ended when it reads.
    pub(super) fn run_on_host(&self, step: &HostStep, index: usize) -> Result<(), DeviceError> {
        let mut transfers = self.transfers();
        let host = &mut transfers.host;
        match step {
            HostStep::Evaluate { operator, inputs, outputs } => host
                .evaluate(&**operator, inputs, outputs)
                .map_err(|error| self.in_operator(index, error)),
            HostStep::Download { from, value, slot } => {
                let bytes =
                    self.download(from, value).map_err(|error| self.in_step(index, error))?;
                self.check_fault()?;
                let tensor = decode(&bytes, value.storage, value.data_type, value.shape.clone())
                    .map_err(|error| self.in_operator(index, error))?;
                host.put(*slot, tensor.into());
                Ok(())
            }
            HostStep::Upload { from, to, value } => {
                let tensor = host.get(from).and_then(Value::into_tensor);
                let tensor = tensor.map_err(|error| self.in_operator(index, error))?;
                let bytes = match encode(&tensor, value.storage) {
                    Ok(bytes) if tensor.shape() == value.shape => bytes,
                    Ok(_) => {
                        let (left, right) = (value.shape.clone(), tensor.shape().to_vec());
                        return Err(self.in_operator(index, OperatorError::Shapes { left, right }));
                    }
                    Err(error) => return Err(self.in_operator(index, error)),
                };
                self.upload(&bytes, to).map_err(|error| self.in_step(index, error))
            }
        }
    }

    fn download(&self, from: &Place, value: &DeviceValue) -> Result<Vec<u8>, CudaError> {
        let mut bytes = vec![0; value.size_bytes()];
        let (stream, source) = (self.lane.stream(), self.bases.address(from));
        // SAFETY: the plan placed a value of this size there; `bytes` outlives the wait.
        unsafe { copy_to_host(stream, bytes.as_mut_ptr(), source, bytes.len()) }?;
        stream.synchronize()?;
        Ok(bytes)
    }

    fn upload(&self, bytes: &[u8], to: &Place) -> Result<(), CudaError> {
        let (stream, destination) = (self.lane.stream(), self.bases.address(to));
        // SAFETY: the plan placed a value of this size there, as was checked; `bytes` outlives the wait.
        unsafe { copy_to_device(stream, destination, bytes.as_ptr(), bytes.len()) }?;
        stream.synchronize()
    }
}
