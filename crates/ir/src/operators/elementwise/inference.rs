//! What elementwise operators know of their outputs: the inputs' shapes, broadcast.

use crate::broadcast::broadcast_dimensions;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::InputFacts;

/// The first input's type and shape.
pub(crate) fn like_first(inputs: &InputFacts<'_>) -> Fact {
    Fact::partial(inputs.data_type(0), inputs.dimensions(0).map(<[_]>::to_vec))
}

/// The first input's shape with another type.
pub(crate) fn shaped_like_first(inputs: &InputFacts<'_>, data_type: Option<DataType>) -> Fact {
    Fact::partial(data_type, inputs.dimensions(0).map(<[_]>::to_vec))
}

/// A value of the given type whose shape the first `count` inputs broadcast to.
pub(crate) fn broadcast(
    inputs: &InputFacts<'_>,
    count: usize,
    data_type: Option<DataType>,
) -> Result<Fact, OperatorError> {
    let mut dimensions = Some(Vec::new());
    for index in 0..count {
        dimensions = match (dimensions, inputs.dimensions(index)) {
            (Some(so_far), Some(next)) => Some(broadcast_dimensions(&so_far, next)?),
            _ => None,
        };
    }
    Ok(Fact::partial(data_type, dimensions))
}
