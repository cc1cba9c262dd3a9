//! What all models and partitions of one GPU share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use weft_device::{DeviceError, KernelChoices, UnitSet};

use crate::compiler::{Compiler, Kernels};
use crate::driver::{Context, DeviceBuffer, PartitionPool, StreamPriority, UnitTable};
use crate::host_copies::HostCopies;
use crate::launch::{DeviceWeights, WeightMemory};
use crate::measure::Measurements;
use crate::options::CudaOptions;
use crate::partition::Lane;
use crate::vendor::VendorLibraries;

/// The candidates that were found to be fastest, and how often others were found since the GPU was opened.
#[derive(Clone, Default)]
pub(crate) struct KnownChoices {
    pub(crate) choices: Option<Arc<dyn KernelChoices>>,
    pub(crate) version: u64,
}

/// One GPU in use.
pub(crate) struct Gpu {
    pub(crate) context: Arc<Context>,
    pub(crate) kernels: Kernels,
    pub(crate) pool: PartitionPool,
    pub(crate) options: CudaOptions,
    /// Which candidates were fastest, so that equal problems are measured once.
    pub(crate) measurements: Measurements,
    /// NVIDIA's libraries, for those of the candidates that call them.
    pub(crate) libraries: VendorLibraries,
    /// For inputs and outputs of groups.
    pub(crate) copies: Arc<HostCopies>,
    /// The candidates that were found to be fastest, where somebody has searched.
    choices: Mutex<KnownChoices>,
    /// The lanes in use: partitions over the same units share theirs.
    lanes: Mutex<HashMap<(UnitSet, StreamPriority), Weak<Lane>>>,
}

impl Gpu {
    pub(crate) fn open(ordinal: usize, options: CudaOptions) -> Result<Arc<Self>, DeviceError> {
        let context = Context::open(ordinal)?;
        let compiler = Arc::new(Compiler::of_process()?);
        let table = UnitTable::split(&context, options.sms_per_unit)?;
        Ok(Arc::new(Self {
            kernels: Kernels::new(context.clone(), compiler),
            pool: PartitionPool::new(table),
            options,
            measurements: Measurements::default(),
            libraries: VendorLibraries::default(),
            copies: Arc::new(HostCopies::start()),
            choices: Mutex::default(),
            lanes: Mutex::default(),
            context,
        }))
    }

    /// The candidates that plans take from now on.
    pub(crate) fn use_choices(&self, choices: Arc<dyn KernelChoices>) {
        let mut known = self.lock_choices();
        *known = KnownChoices { choices: Some(choices), version: known.version + 1 };
    }

    /// The candidates that plans take, where some are known.
    pub(crate) fn known_choices(&self) -> KnownChoices {
        self.lock_choices().clone()
    }

    fn lock_choices(&self) -> MutexGuard<'_, KnownChoices> {
        self.choices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lane of a set of units.
    pub(crate) fn lane(&self, units: &UnitSet) -> Result<Arc<Lane>, DeviceError> {
        self.lane_at(units, StreamPriority::Foreground)
    }

    /// The same, with work of a priority.
    pub(crate) fn lane_at(
        &self,
        units: &UnitSet,
        priority: StreamPriority,
    ) -> Result<Arc<Lane>, DeviceError> {
        let place = (units.clone(), priority);
        self.pool.table().layout().check(units)?;
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = lanes.get(&place).and_then(Weak::upgrade) {
            return Ok(lane);
        }
        lanes.retain(|_, lane| lane.strong_count() > 0);
        let lane = Arc::new(Lane::new(self.pool.get_at(units, priority)?)?);
        lanes.insert(place, Arc::downgrade(&lane));
        Ok(lane)
    }
}

/// Memory of a GPU, for weights.
pub(crate) struct GpuMemory(pub(crate) Arc<Context>);

impl WeightMemory for GpuMemory {
    fn store(&self, bytes: &[u8]) -> Result<DeviceWeights, DeviceError> {
        let buffer = DeviceBuffer::from_bytes(&self.0, bytes)?;
        let address = buffer.address();
        Ok(DeviceWeights { address, size_bytes: bytes.len(), memory: Box::new(buffer) })
    }
}
