//! Parameters as gRPC messages carry them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::inference::InferParameter;
use super::inference::infer_parameter::ParameterChoice;
use crate::infer::RegionRange;
use crate::parameters::{OFFSET, ParameterValue, REGION, SIZE};

pub(super) type Parameters = BTreeMap<String, InferParameter>;

pub(super) fn value(parameter: &InferParameter) -> ParameterValue<'_> {
    match &parameter.parameter_choice {
        Some(ParameterChoice::BoolParam(value)) => ParameterValue::Bool(*value),
        Some(ParameterChoice::Int64Param(value)) => ParameterValue::Integer((*value).into()),
        Some(ParameterChoice::Uint64Param(value)) => ParameterValue::Integer((*value).into()),
        Some(ParameterChoice::DoubleParam(value)) => ParameterValue::Float(*value),
        Some(ParameterChoice::StringParam(value)) => ParameterValue::Text(Cow::Borrowed(value)),
        None => ParameterValue::Other,
    }
}

pub(super) fn insert(parameters: &mut Parameters, name: &str, choice: ParameterChoice) {
    parameters.insert(name.to_owned(), InferParameter { parameter_choice: Some(choice) });
}

pub(super) fn insert_range(parameters: &mut Parameters, range: &RegionRange) {
    let integer = |bytes: usize| ParameterChoice::Int64Param(bytes as i64);
    insert(parameters, REGION, ParameterChoice::StringParam(range.region.clone()));
    insert(parameters, OFFSET, integer(range.offset_bytes));
    insert(parameters, SIZE, integer(range.size_bytes));
}
