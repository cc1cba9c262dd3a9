//! One model with several sets of kernels, timed in turns.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use weft_cuda::{CudaExecutable, CudaModel, CudaPartition};
use weft_device::{Device, KernelChoices, LoadedModel, Partition, TunableDevice, UnitSet};
use weft_ir::{Graph, Value};

use crate::bench::{Subject, lower_quartile, median_us};
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

impl Contest<'_> {
    /// The latency with each set of kernels, in microseconds: the lower quartiles of rounds in which each has its turn.
    pub(crate) fn latencies_us(
        &self,
        sets: &[Arc<dyn KernelChoices>],
        settings: ContestSettings,
    ) -> Result<Vec<f64>> {
        let ring = Ring::open(self.device, self.model, self.dimensions, self.units)?;
        let mut all = vec![Vec::new(); sets.len()];
        for _ in 0..settings.preparations {
            let entered = sets.iter().map(|set| ring.enter(self.batch, set.clone()));
            let contestants = entered.collect::<Result<Vec<Contestant>>>()?;
            let rounds = settings.rounds_us(&contestants.iter().collect::<Vec<_>>())?;
            all.iter_mut().zip(rounds).for_each(|(all, rounds)| all.extend(rounds));
        }
        Ok(all.iter().map(|times| lower_quartile(times)).collect())
    }
}

/// A model that is loaded, and the partition that it runs on.
pub(crate) struct Ring<'a> {
    device: &'a dyn TunableDevice,
    dimensions: &'a DimensionOptions,
    graph: Graph,
    place: Place,
}

enum Place {
    OnCpu { model: Arc<dyn LoadedModel>, partition: Arc<dyn Partition> },
    OnGpu { model: Arc<CudaModel>, partition: Arc<CudaPartition> },
}

impl<'a> Ring<'a> {
    /// Loads a model, for any batch sizes and sets of kernels.
    pub(crate) fn open(
        device: &'a OpenDevice,
        model: &str,
        dimensions: &'a DimensionOptions,
        units: &UnitSet,
    ) -> Result<Self> {
        let path = model_file::resolve(model)?;
        let graph = model_file::load(&path)?;
        let name = model_file::name(&path);
        let place = match device {
            OpenDevice::Cpu(device) => {
                let device: &dyn Device = device;
                let (model, partition) = (device.load(&name, &graph)?, device.partition(units)?);
                Place::OnCpu { model, partition }
            }
            OpenDevice::Cuda(device) => Place::OnGpu {
                model: device.load_with_precision(&name, &graph, device.precision()),
                partition: device.cuda_partition(units)?,
            },
        };
        Ok(Self { device: device.as_tunable(), dimensions, graph, place })
    }

    /// Prepares the model with a set of kernels, which all that are prepared meanwhile have as well.
    pub(crate) fn enter(&self, batch: usize, set: Arc<dyn KernelChoices>) -> Result<Contestant> {
        let shapes = self.dimensions.shapes(&self.graph, batch)?;
        self.device.use_choices(set);
        match &self.place {
            Place::OnCpu { model, partition } => {
                let subject = Subject::of_loaded(&**model, &shapes, &**partition)?;
                Ok(Contestant::OnCpu(Box::new(subject)))
            }
            Place::OnGpu { model, partition } => {
                let inputs = model_file::random_inputs(&self.graph, &shapes, 1)?;
                let inputs: Vec<Value> = inputs.into_iter().map(Value::Tensor).collect();
                let executable = partition.prepare_model(model, &shapes)?;
                executable.write_inputs(&inputs)?;
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
    /// The latencies of two in each round, in microseconds: what slows a machine for a while slows both.
    pub(crate) fn pairs_us(self, one: &Contestant, other: &Contestant) -> Result<Vec<(f64, f64)>> {
        let rounds = self.rounds_us(&[one, other])?;
        Ok(rounds[0].iter().copied().zip(rounds[1].iter().copied()).collect())
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
