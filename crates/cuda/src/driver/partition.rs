//! The GPU's SMs as units, and partitions over any set of them.

use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUdevResourceType, CUdevSmResourceSplit_flags};
use weft_device::UnitSet;

use super::context::Context;
use super::error::{CudaError, checked};
use super::green::{Entered, GreenContext};
use super::module::Kernel;
use super::stream::{Stream, StreamPriority};
use crate::units::UnitLayout;

/// The SMs of a GPU, split into units.
pub struct UnitTable {
    context: Arc<Context>,
    groups: Vec<sys::CUdevResource>,
    layout: UnitLayout,
}

// SAFETY: the groups are plain data that the driver reads.
unsafe impl Send for UnitTable {}
// SAFETY: as above; no field changes.
unsafe impl Sync for UnitTable {}

/// The smallest unit whose SMs can all run one cluster of blocks.
const CLUSTER_SMS: u32 = 8;

impl UnitTable {
    /// Splits a GPU's SMs into units of `sms_per_unit`; the SMs that are left over are one further unit, the last.
    /// Units of fewer than 8 SMs cannot be relied on to run clusters of blocks. Where the driver splits none, as in a share that
    /// MPS bounds, all SMs are one unit.
    pub fn split(context: &Arc<Context>, sms_per_unit: u32) -> Result<Self, CudaError> {
        context.bind_to_thread()?;
        let all = all_sms(context)?;
        let groups = match groups_of(&all, sms_per_unit) {
            Err(error) if error.is_invalid_value() => {
                let layout = UnitLayout::new(vec![context.chip().sm_count]);
                return Ok(Self { context: context.clone(), groups: vec![all], layout });
            }
            groups => groups?,
        };
        let layout = UnitLayout::new(groups.iter().map(sms_of).collect());
        Ok(Self { context: context.clone(), groups, layout })
    }

    /// The units and their sizes.
    pub fn layout(&self) -> &UnitLayout {
        &self.layout
    }

    /// The GPU that was split.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Makes a partition over a set of units. That over all of them is the primary context, which owns every SM.
    pub fn partition(&self, units: &UnitSet) -> Result<Arc<PartitionContext>, CudaError> {
        self.partition_at(units, StreamPriority::Foreground)
    }

    /// The same, with work of a priority.
    pub fn partition_at(
        &self,
        units: &UnitSet,
        priority: StreamPriority,
    ) -> Result<Arc<PartitionContext>, CudaError> {
        self.layout.check(units).map_err(|error| CudaError::Refused(error.to_string()))?;
        let (stream, sm_count) = if units.len() == self.groups.len() {
            (Stream::over_all(&self.context, priority)?, self.context.chip().sm_count)
        } else {
            let groups: Vec<_> = units.iter().map(|unit| self.groups[unit]).collect();
            let green = GreenContext::new(&self.context, &groups)?;
            (Stream::in_green_context(&green, priority)?, green.sm_count())
        };
        Ok(Arc::new(PartitionContext { units: units.clone(), sm_count, stream }))
    }
}

/// A set of units with a stream of its own.
#[derive(Debug)]
pub struct PartitionContext {
    units: UnitSet,
    sm_count: u32,
    stream: Stream,
}

impl PartitionContext {
    /// The units it is over.
    pub fn units(&self) -> &UnitSet {
        &self.units
    }

    /// How many SMs its work runs on.
    pub fn sm_count(&self) -> u32 {
        self.sm_count
    }

    /// Its queue of work.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The GPU it is a part of.
    pub fn context(&self) -> &Arc<Context> {
        self.stream.context()
    }

    /// Makes its context current on this thread until the guard is dropped.
    pub fn enter(&self) -> Result<Entered<'_>, CudaError> {
        self.stream.enter()
    }

    /// Loads kernels now that would otherwise be loaded at their first launch, which is too late while capturing.
    pub fn load<'a>(&self, kernels: impl IntoIterator<Item = &'a Kernel>) -> Result<(), CudaError> {
        let _entered = self.enter()?;
        kernels.into_iter().try_for_each(Kernel::load_into_current)
    }
}

fn no_resource() -> sys::CUdevResource {
    // SAFETY: all fields are numbers, for which zero is valid.
    unsafe { std::mem::zeroed() }
}

/// SMs in groups of `sms_per_unit`, and what is left over.
fn groups_of(
    all: &sys::CUdevResource,
    sms_per_unit: u32,
) -> Result<Vec<sys::CUdevResource>, CudaError> {
    let flags = if sms_per_unit < CLUSTER_SMS {
        CUdevSmResourceSplit_flags::CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING as u32
    } else {
        0
    };
    let mut count = 0;
    // SAFETY: without a place for groups, the driver writes their number alone.
    unsafe {
        checked!(cuDevSmResourceSplitByCount(
            ptr::null_mut(),
            &mut count,
            all,
            ptr::null_mut(),
            flags,
            sms_per_unit,
        ))
    }?;
    let mut groups = vec![no_resource(); count as usize];
    let mut remainder = no_resource();
    // SAFETY: there is place for `count` groups and for what is left over.
    unsafe {
        checked!(cuDevSmResourceSplitByCount(
            groups.as_mut_ptr(),
            &mut count,
            all,
            &mut remainder,
            flags,
            sms_per_unit,
        ))
    }?;
    groups.truncate(count as usize);
    if sms_of(&remainder) > 0 {
        groups.push(remainder);
    }
    Ok(groups)
}

fn all_sms(context: &Context) -> Result<sys::CUdevResource, CudaError> {
    let mut all = no_resource();
    let kind = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
    // SAFETY: the device exists, and the driver writes one description.
    unsafe { checked!(cuDeviceGetDevResource(context.device(), &mut all, kind)) }?;
    Ok(all)
}

fn sms_of(resource: &sys::CUdevResource) -> u32 {
    if resource.type_ != CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM {
        return 0;
    }
    // SAFETY: the type says that the union holds SMs.
    unsafe { resource.__bindgen_anon_1.sm.smCount }
}
