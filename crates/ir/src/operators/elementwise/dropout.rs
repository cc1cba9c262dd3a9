//! Dropout: the identity, save in training, where it zeroes elements at random.

use std::sync::Arc;

use super::convert::convert;
use super::inference::{like_first, shaped_like_first};
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::narrow::Rounding;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::random::generator::Generator;
use crate::tensor::Tensor;
use crate::value::Value;

/// In training, elements are dropped with a probability and the rest scaled up to keep the mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropout {
    /// The generator's seed.
    pub seed: Option<u32>,
    /// False where the node cannot ask for training: it lists no input that would.
    pub may_train: bool,
}

const DEFAULT_RATIO: f64 = 0.5;

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    // Training became an input at opset 12; before, models are for inference.
    let may_train = source.opset >= 12 && source.input_count > 2;
    let seed = source.attributes.int("seed")?.map(|seed| seed as u32);
    Ok(Arc::new(Dropout { seed, may_train }))
}

impl Operator for Dropout {
    fn name(&self) -> &'static str {
        "Dropout"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let ratio = match inputs.optional_tensor(1)? {
            Some(ratio) if self.may_train => {
                convert(ratio, DataType::F64, Rounding::default())?.only::<f64>()?
            }
            _ => DEFAULT_RATIO,
        };
        let training = match inputs.optional_tensor(2)? {
            Some(training) if self.may_train => training.only::<bool>()?,
            _ => false,
        };
        if !(0.0..1.0).contains(&ratio) {
            return Err(OperatorError::Invalid(format!("a ratio of {ratio} is not in [0, 1)")));
        }
        if !training || ratio == 0.0 {
            let mask = Tensor::filled(x.shape().to_vec(), true)?;
            return Ok(vec![x.clone().into(), mask.into()]);
        }
        let mut generator = Generator::new(self.seed);
        let kept: Vec<bool> = (0..x.len()).map(|_| generator.uniform() >= ratio).collect();
        let scale = 1.0 / (1.0 - ratio);
        let elements = x.to_f64s()?;
        let scaled = elements
            .iter()
            .zip(&kept)
            .map(|(&x, &kept)| if kept { x * scale } else { 0.0 })
            .collect();
        let shape = x.shape().to_vec();
        let y = Tensor::from_f64s(shape.clone(), x.data_type(), scaled)?;
        Ok(vec![y.into(), Tensor::from_vec(shape, kept)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let mut outputs = vec![like_first(inputs), shaped_like_first(inputs, Some(DataType::Bool))];
        outputs.truncate(inputs.output_count());
        Ok(outputs)
    }

    fn permuted(&self, _permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        // What is dropped depends on the order of the elements.
        (!self.may_train).then(|| Arc::new(*self) as Arc<dyn Operator>)
    }

    fn is_deterministic(&self) -> bool {
        !self.may_train
    }
}
