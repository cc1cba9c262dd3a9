//! The operators of a model that have several candidates.

use std::cell::RefCell;
use std::sync::Arc;
use std::thread;

use weft_device::{DeviceError, TunableOperator};

use super::operator::CudaOperator;
use crate::choosing::Choosing;
use crate::gpu::Gpu;
use crate::library_call::LibrarySet;
use crate::model::CudaModel;
use crate::plan::build;
use crate::plan::chooser::{Chooser, Problem};
use crate::plan::target::Target;

/// Takes the first candidates, and notes what there was to choose.
struct Collector<'a> {
    gpu: &'a Arc<Gpu>,
    sm_count: u32,
    found: RefCell<Vec<CudaOperator>>,
}

impl Chooser for Collector<'_> {
    fn choose(&self, problems: &[Problem<'_>]) -> Vec<Result<usize, DeviceError>> {
        let mut found = self.found.borrow_mut();
        for problem in problems {
            let Some(operator) = CudaOperator::new(problem, self.sm_count, self.gpu) else {
                continue;
            };
            match found.iter_mut().find(|known| known.key() == operator.key()) {
                Some(known) => known.occurrences += 1,
                None => found.push(operator),
            }
        }
        problems.iter().map(|_| Ok(0)).collect()
    }
}

/// The operators of a model at these shapes on partitions of so many SMs, equal ones once.
pub(super) fn operators(
    gpu: &Arc<Gpu>,
    model: &CudaModel,
    shapes: &[Vec<usize>],
    sm_count: u32,
) -> Result<Vec<CudaOperator>, DeviceError> {
    let (graph, libraries) = thread::scope(|scope| {
        let libraries = scope.spawn(|| match gpu.options.uses_libraries {
            true => gpu.libraries.available(&gpu.context),
            false => LibrarySet::default(),
        });
        (model.graph.specialise(shapes), libraries.join().unwrap_or_default())
    });
    let graph = graph.map_err(|source| DeviceError::Model {
        model: model.name.clone(),
        source: Box::new(source),
    })?;
    let collector = Collector { gpu, sm_count, found: RefCell::default() };
    let target = Target {
        model: &model.name,
        weights: &model.weights,
        chip: gpu.context.chip().with_sms(sm_count),
        precision: model.precision,
        chooser: &collector,
        libraries: libraries.into(),
        choosing: Choosing::All,
    };
    build(&graph, &target)?;
    Ok(collector.found.into_inner())
}
