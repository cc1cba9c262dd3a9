//! Classical machine learning: the operators of the domain `ai.onnx.ml`.

mod array_feature_extractor;
mod binarizer;
mod label_encoder;
mod tree_ensemble;

use std::sync::Arc;

use crate::error::OperatorError;
use crate::operator::{NodeSource, Operator, Registration};

const fn classical(
    name: &'static str,
    build: fn(&NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError>,
) -> Registration {
    Registration { domain: "ai.onnx.ml", name, build }
}

pub(super) const OPERATORS: &[Registration] = &[
    classical("ArrayFeatureExtractor", array_feature_extractor::build),
    classical("Binarizer", binarizer::build),
    classical("LabelEncoder", label_encoder::build),
    classical("TreeEnsemble", tree_ensemble::build),
];
