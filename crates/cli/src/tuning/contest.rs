//! One model with several sets of kernels, timed in turns.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use weft_cuda::{CudaExecutable, CudaModel, CudaPartition};
use weft_device::{Device, KernelChoices, LoadedModel, Partition, TunableDevice, UnitSet};
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
    /// How often all are prepared anew: where their memory comes to lie has a part in how fast they are.
    pub(crate) preparations: usize,
    /// In which each has its turn, after each preparation.
    pub(crate) rounds: usize,
    /// For each set of kernels in each round.
    pub(crate) time: Duration,
}

impl<'a> Contest<'a> {
    /// The latency with each set of kernels, in microseconds: the medians of rounds in which each has its turn.
    pub(crate) fn latencies_us(
        &self,
        sets: &[Arc<dyn KernelChoices>],
        settings: ContestSettings,
    ) -> Result<Vec<f64>> {
        let ring = self.open()?;
        let mut all = vec![Vec::new(); sets.len()];
        for _ in 0..settings.preparations {
            let entered = sets.iter().map(|set| ring.enter(set.clone()));
            let contestants = entered.collect::<Result<Vec<Contestant>>>()?;
            let rounds = settings.rounds_us(&contestants.iter().collect::<Vec<_>>())?;
            all.iter_mut().zip(rounds).for_each(|(all, rounds)| all.extend(rounds));
        }
        Ok(all.iter().map(|times| median(times)).collect())
    }

    /// Loads the model, for any number of sets of kernels.
    pub(crate) fn open(&self) -> Result<Ring<'a>> {
        let path = model_file::resolve(self.model)?;
        let graph = model_file::load(&path)?;
        let shapes = self.dimensions.shapes(&graph, self.batch)?;
        let name = model_file::name(&path);
        let place = match self.device {
            OpenDevice::Cpu(device) => {
                let device: &dyn Device = device;
                let (model, partition) =
                    (device.load(&name, &graph)?, device.partition(self.units)?);
                Place::OnCpu { model, partition }
            }
            OpenDevice::Cuda(device) => {
                let inputs = model_file::random_inputs(&graph, &shapes, 1)?;
                Place::OnGpu {
                    model: device.load_with_precision(&name, &graph, device.precision()),
                    partition: device.cuda_partition(self.units)?,
                    inputs: inputs.into_iter().map(Value::Tensor).collect(),
                }
            }
        };
        Ok(Ring { device: self.device.as_tunable(), shapes, place })
    }
}

/// A model that is loaded, and the partition that it runs on.
pub(crate) struct Ring<'a> {
    device: &'a dyn TunableDevice,
    shapes: Vec<Vec<usize>>,
    place: Place,
}

enum Place {
    OnCpu { model: Arc<dyn LoadedModel>, partition: Arc<dyn Partition> },
    OnGpu { model: Arc<CudaModel>, partition: Arc<CudaPartition>, inputs: Vec<Value> },
}

impl Ring<'_> {
    /// Prepares the model with a set of kernels.
    pub(crate) fn enter(&self, set: Arc<dyn KernelChoices>) -> Result<Contestant> {
        self.device.use_choices(set);
        match &self.place {
            Place::OnCpu { model, partition } => {
                let subject = Subject::of_loaded(&**model, &self.shapes, &**partition)?;
                Ok(Contestant::OnCpu(Box::new(subject)))
            }
            Place::OnGpu { model, partition, inputs } => {
                let executable = partition.prepare_model(model, &self.shapes)?;
                executable.write_inputs(inputs)?;
                Ok(Contestant::OnGpu(Box::new(executable)))
            }
        }
    }
}

/// The model with one set of kernels.
pub(crate) enum Contestant {
    OnCpu(Box<Subject>),
    OnGpu(Box<CudaExecutable>),
}

impl ContestSettings {
    /// The latency of one in microseconds, and how many times as long another one takes: the median of rounds in which
    /// both have their turn, so that what slows a machine for a while slows both.
    pub(crate) fn compare(self, one: &Contestant, other: &Contestant) -> Result<(f64, f64)> {
        let rounds = self.rounds_us(&[one, other])?;
        let ratios: Vec<f64> = rounds[0].iter().zip(&rounds[1]).map(|(one, it)| it / one).collect();
        Ok((median(&rounds[0]), median(&ratios)))
    }

    /// The latency of each in each round.
    fn rounds_us(self, contestants: &[&Contestant]) -> Result<Vec<Vec<f64>>> {
        let mut rounds = vec![Vec::new(); contestants.len()];
        for round in 0..self.rounds {
            for turn in 0..contestants.len() {
                // Who goes first changes, so that no one always follows the same other.
                let place = (turn + round) % contestants.len();
                rounds[place].push(contestants[place].median_us(self.time)?);
            }
        }
        Ok(rounds)
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
