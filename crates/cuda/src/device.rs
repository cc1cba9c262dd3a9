//! A GPU as a device: its units are groups of SMs.

use std::sync::Arc;

use weft_device::{
    Device, DeviceDescription, DeviceError, LoadedModel, Mix, MixMember, Partition, UnitSet,
};
use weft_ir::Graph;

use crate::bandwidth;
use crate::compiler::Helpers;
use crate::driver::{Context, StreamPriority};
use crate::gpu::{Gpu, GpuMemory};
use crate::known_plans::KnownPlans;
use crate::mix::CudaMix;
use crate::model::CudaModel;
use crate::options::CudaOptions;
use crate::partition::CudaPartition;
use crate::weights::WeightStore;
use crate::{Chip, Precision, UnitLayout};

/// One NVIDIA GPU.
pub struct CudaDevice {
    gpu: Arc<Gpu>,
}

impl CudaDevice {
    pub(crate) fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// How many GPUs this process can open; where CUDA cannot be used at all, why.
    pub fn count() -> Result<usize, DeviceError> {
        Ok(Context::device_count()?)
    }

    /// Opens a GPU by its number.
    pub fn open(ordinal: usize, options: CudaOptions) -> Result<Self, DeviceError> {
        Ok(Self { gpu: Gpu::open(ordinal, options)? })
    }

    /// The units and their sizes in SMs.
    pub fn layout(&self) -> &UnitLayout {
        self.gpu.pool.table().layout()
    }

    /// The chip with all its SMs.
    pub fn chip(&self) -> Chip {
        self.gpu.context.chip()
    }

    /// What models run at where nothing else is asked for.
    pub fn precision(&self) -> Precision {
        self.gpu.options.precision
    }

    /// The GPU's driver context, for measuring beside what the device does.
    pub fn context(&self) -> &Arc<Context> {
        &self.gpu.context
    }

    /// What its memory moves in bytes per second, reading and writing, when all SMs copy large buffers.
    pub fn measure_bandwidth(&self) -> Result<f64, DeviceError> {
        Ok(bandwidth::measure(&self.gpu.context)?)
    }

    /// Loads a model that runs at a precision of its own.
    pub fn load_with_precision(
        &self,
        name: &str,
        graph: &Graph,
        precision: Precision,
    ) -> Arc<CudaModel> {
        let memory = GpuMemory(self.gpu.context.clone());
        Arc::new(CudaModel {
            name: name.to_string(),
            graph: graph.clone(),
            precision,
            weights: WeightStore::new(Arc::new(memory)),
            plans: KnownPlans::default(),
            gpu: self.gpu.clone(),
        })
    }

    /// The partition over a set of units, with all that it offers beyond [`Partition`].
    pub fn cuda_partition(&self, units: &UnitSet) -> Result<Arc<CudaPartition>, DeviceError> {
        Ok(Arc::new(CudaPartition { gpu: self.gpu.clone(), lane: self.gpu.lane(units)? }))
    }

    /// Has further processes compile kernels from now on.
    pub fn use_compile_helpers(&self, helpers: Helpers) {
        self.gpu.kernels.compiler().use_helpers(helpers);
    }

    /// Makes partitions ahead of their use.
    pub fn prepare_partitions(&self, sets: &[UnitSet]) -> Result<(), DeviceError> {
        sets.iter().try_for_each(|units| self.layout().check(units))?;
        Ok(self.gpu.pool.prepare(sets)?)
    }
}

impl Device for CudaDevice {
    fn description(&self) -> DeviceDescription {
        let context = &self.gpu.context;
        DeviceDescription {
            kind: "cuda",
            name: context.name().to_string(),
            unit_count: self.layout().len(),
            unit: format!("group of {} SMs", self.gpu.options.sms_per_unit),
            instruction_set: context.chip().architecture(true),
            memory_bytes: Some(context.memory_bytes()),
            peak_gflops_per_unit: None,
        }
    }

    fn load(&self, name: &str, graph: &Graph) -> Result<Arc<dyn LoadedModel>, DeviceError> {
        Ok(self.load_with_precision(name, graph, self.gpu.options.precision))
    }

    fn partition(&self, units: &UnitSet) -> Result<Arc<dyn Partition>, DeviceError> {
        Ok(self.cuda_partition(units)?)
    }

    fn has_groups(&self) -> bool {
        true
    }

    /// Its blocks start where no block of a foreground partition waits for the SM, and end what they began.
    fn background_partition(
        &self,
        units: &UnitSet,
    ) -> Option<Result<Arc<dyn Partition>, DeviceError>> {
        let partition = || -> Result<Arc<dyn Partition>, DeviceError> {
            let lane = self.gpu.lane_at(units, StreamPriority::Background)?;
            Ok(Arc::new(CudaPartition { gpu: self.gpu.clone(), lane }))
        };
        Some(partition())
    }
    fn mix(
        &self,
        models: &[MixMember],
        units: &UnitSet,
    ) -> Option<Result<Box<dyn Mix>, DeviceError>> {
        Some(CudaMix::new(&self.gpu, models, units).map(|mix| Box::new(mix) as Box<dyn Mix>))
    }
}
