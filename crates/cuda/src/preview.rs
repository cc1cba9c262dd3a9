//! What would be made of a model on a GPU that is not here.

use std::sync::Arc;

use weft_device::{DeviceError, ExecutionReport};
use weft_ir::Graph;

use crate::choosing::Choosing;
use crate::library_call::LibrarySet;
use crate::plan::build;
use crate::plan::chooser::FirstCandidate;
use crate::plan::target::Target;
use crate::{Chip, NoMemory, Precision, WeightStore};

/// The report of a model that is planned for a chip, and neither compiled nor run.
pub fn preview(
    name: &str,
    graph: &Graph,
    shapes: &[Vec<usize>],
    chip: Chip,
    precision: Precision,
) -> Result<ExecutionReport, DeviceError> {
    let optimised = graph.specialise(shapes).map_err(|source| DeviceError::Model {
        model: name.to_string(),
        source: Box::new(source),
    })?;
    let weights = WeightStore::new(Arc::new(NoMemory));
    let target = Target {
        model: name,
        weights: &weights,
        chip,
        precision,
        chooser: &FirstCandidate,
        libraries: LibrarySet::default().into(),
        choosing: Choosing::Ranked,
    };
    Ok(build(&optimised, &target)?.report)
}
