//! A model on the device that is profiled: it is loaded once, and timed case by case.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use weft_cuda::{CudaDevice, CudaModel};
use weft_device::{Device, ExecutionReport, LoadedModel, UnitSet};
use weft_ir::{Graph, Value};
use weft_scheduler::Span;

use crate::bench::{Subject, median_us};
use crate::device::OpenDevice;
use crate::model_file::{self, DimensionOptions};

/// A loaded model.
pub(super) enum ProfiledModel<'a> {
    OnCpu { device: &'a dyn Device, model: Arc<dyn LoadedModel> },
    OnGpu { device: &'a CudaDevice, model: Arc<CudaModel> },
}

/// What is measured at once: a batch on a partition.
pub(super) struct Case<'a> {
    pub(super) batch: usize,
    pub(super) units: UnitSet,
    pub(super) dimensions: &'a DimensionOptions,
    pub(super) time: Duration,
}

/// What a case gave.
pub(super) struct Timed {
    pub(super) latency: Span,
    pub(super) dram_bytes: f64,
    pub(super) memory_bytes: u64,
}

impl<'a> ProfiledModel<'a> {
    /// Loads a model file.
    pub(super) fn load(path: &Path, device: &'a OpenDevice) -> Result<Self> {
        let (name, graph) = (model_file::name(path), model_file::load(path)?);
        Ok(match device {
            OpenDevice::Cpu(device) => Self::OnCpu { device, model: device.load(&name, &graph)? },
            OpenDevice::Cuda(device) => {
                let model = device.load_with_precision(&name, &graph, device.precision());
                Self::OnGpu { device, model }
            }
        })
    }

    /// Prepares the model for a case and times it.
    pub(super) fn time(&self, case: &Case<'_>) -> Result<Timed> {
        let shapes = case.dimensions.shapes(self.graph(), case.batch)?;
        match self {
            Self::OnCpu { device, model } => {
                let partition = device.partition(&case.units)?;
                let subject = Subject::of_loaded(&**model, &shapes, &*partition)?;
                let latency = Span::from_us(subject.median_ms(case.time)? * 1e3);
                let report = subject.report();
                let memory_bytes = (report.weight_bytes + report.arena_bytes) as u64;
                Ok(Timed { latency, dram_bytes: dram_bytes(report), memory_bytes })
            }
            Self::OnGpu { device, model } => {
                let inputs = model_file::random_inputs(model.graph(), &shapes, 1)?;
                let inputs: Vec<Value> = inputs.into_iter().map(Value::Tensor).collect();
                let executable =
                    device.cuda_partition(&case.units)?.prepare_model(model, &shapes)?;
                executable.write_inputs(&inputs)?;
                Ok(Timed {
                    latency: Span::from_us(median_us(&executable, case.time)?),
                    dram_bytes: executable.dram_bytes() as f64,
                    memory_bytes: executable.memory_bytes() as u64,
                })
            }
        }
    }

    fn graph(&self) -> &Graph {
        match self {
            Self::OnCpu { model, .. } => model.graph(),
            Self::OnGpu { model, .. } => model.graph(),
        }
    }
}

/// What a CPU moves: the weights read once, and the arena of activations written once and read once: less than what moves
/// where buffers are used again and again, more where caches keep them.
fn dram_bytes(report: &ExecutionReport) -> f64 {
    report.weight_bytes as f64 + 2.0 * report.arena_bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_moves_weights_once_and_activations_twice() {
        let report =
            ExecutionReport { weight_bytes: 1000, arena_bytes: 30, ..ExecutionReport::default() };
        assert_eq!(dram_bytes(&report), 1060.0);
    }
}
