//! One model with several sets of kernels, timed in turns.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use weft_cuda::CudaExecutable;
use weft_device::{KernelChoices, UnitSet};
use weft_ir::Value;

use crate::bench::{Subject, median, median_us};
use crate::device::OpenDevice;
use crate::model_file::{self, DimensionOptions};

/// What is timed.
pub(crate) struct Contest<'a> {
    pub(crate) device: &'a OpenDevice,
    /// A file, or zoo:NAME.
    pub(crate) model: &'a str,
    pub(crate) batch: usize,
    pub(crate) dimensions: &'a DimensionOptions,
    pub(crate) units: &'a UnitSet,
}

/// For how long.
#[derive(Clone, Copy)]
pub(crate) struct ContestSettings {
    pub(crate) rounds: usize,
    /// For each set of kernels in each round.
    pub(crate) time: Duration,
}

enum Contestant {
    OnCpu(Box<Subject>),
    OnGpu(Box<CudaExecutable>),
}

impl Contest<'_> {
    /// The latency with each set of kernels, in microseconds: the medians of rounds in which each has its turn.
    pub(crate) fn latencies_us(
        &self,
        sets: &[Arc<dyn KernelChoices>],
        settings: ContestSettings,
    ) -> Result<Vec<f64>> {
        let contestants = self.prepare(sets)?;
        let mut rounds = vec![Vec::new(); sets.len()];
        for round in 0..settings.rounds {
            for turn in 0..sets.len() {
                // Who goes first changes, so that no one always follows the same other.
                let place = (turn + round) % sets.len();
                rounds[place].push(contestants[place].median_us(settings.time)?);
            }
        }
        Ok(rounds.iter().map(|times| median(times)).collect())
    }

    fn prepare(&self, sets: &[Arc<dyn KernelChoices>]) -> Result<Vec<Contestant>> {
        let path = model_file::resolve(self.model)?;
        let graph = model_file::load(&path)?;
        let shapes = self.dimensions.shapes(&graph, self.batch)?;
        let name = model_file::name(&path);
        let prepared: Result<Vec<Contestant>> = match self.device {
            OpenDevice::Cpu(device) => {
                let device: &dyn weft_device::Device = device;
                let model = device.load(&name, &graph)?;
                let partition = device.partition(self.units)?;
                let prepare = |set: &Arc<dyn KernelChoices>| {
                    self.device.as_tunable().use_choices(set.clone());
                    let subject = Subject::of_loaded(&*model, &shapes, &*partition)?;
                    Ok(Contestant::OnCpu(Box::new(subject)))
                };
                sets.iter().map(prepare).collect()
            }
            OpenDevice::Cuda(device) => {
                let model = device.load_with_precision(&name, &graph, device.precision());
                let inputs = model_file::random_inputs(&graph, &shapes, 1)?;
                let inputs: Vec<Value> = inputs.into_iter().map(Value::Tensor).collect();
                let partition = device.cuda_partition(self.units)?;
                let prepare = |set: &Arc<dyn KernelChoices>| {
                    self.device.as_tunable().use_choices(set.clone());
                    let executable = partition.prepare_model(&model, &shapes)?;
                    executable.write_inputs(&inputs)?;
                    Ok(Contestant::OnGpu(Box::new(executable)))
                };
                sets.iter().map(prepare).collect()
            }
        };
        prepared
    }
}

impl Contestant {
    fn median_us(&self, time: Duration) -> Result<f64> {
        match self {
            Self::OnCpu(subject) => Ok(subject.median_ms(time)? * 1e3),
            Self::OnGpu(executable) => median_us(&**executable, time),
        }
    }
}
