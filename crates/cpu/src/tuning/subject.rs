//! Values to compute an operator with, and what some of the results must be.

use super::candidate::Candidate;
use super::fused_operator::{FusedOperator, Product};
use super::kernel::PreparedKernel;
use super::packed_weights::PackedWeights;
use super::random::Random;
use super::sample::Sample;
use crate::conv::{ConvError, Reference};
use crate::{AlignedBuffer, AllocationError, Isa};

/// In how many forms weights are kept.
const MOST_FORMS: usize = 3;

/// Operands of an operator, drawn at random.
pub(super) struct Subject {
    pub(super) operator: FusedOperator,
    pub(super) input: AlignedBuffer,
    pub(super) residual: Option<AlignedBuffer>,
    pub(super) output: AlignedBuffer,
    pub(super) sample: Sample,
    weights: AlignedBuffer,
    bias: Option<AlignedBuffer>,
    /// In the forms that were used last, each with its name.
    packed: Vec<(String, PackedWeights)>,
}

/// Why an operator cannot be tried.
#[derive(Debug, thiserror::Error)]
pub(super) enum SubjectError {
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    #[error(transparent)]
    Conv(#[from] ConvError),
}

impl Subject {
    pub(super) fn new(operator: &FusedOperator) -> Result<Self, SubjectError> {
        let mut random = Random::new(operator.key().operator.as_bytes());
        let (input, weights, output_shape) = match operator.product {
            Product::Linear { rows, depth, columns } => {
                let input = random.values(rows * depth)?;
                (input, random.values(depth * columns)?, vec![rows, columns])
            }
            Product::Conv(problem) => {
                let geometry = problem.geometry()?;
                let [height, width] = problem.output_size()?;
                let input = random.values(geometry.input_elements)?;
                let weights = random.values(geometry.weight_elements)?;
                (input, weights, vec![problem.batch, height, width, problem.channels_out])
            }
        };
        let output_elements: usize = output_shape.iter().product();
        let columns = output_shape.last().copied().unwrap_or(1);
        let bias = operator.has_bias.then(|| random.values(columns)).transpose()?;
        let residual = operator.has_residual.then(|| random.values(output_elements)).transpose()?;
        let sum: Box<dyn Fn(usize) -> f64> = match operator.product {
            Product::Linear { depth, columns, .. } => Box::new({
                let (input, weights) = (&input, &weights);
                move |index| {
                    let row = &input[index / columns * depth..][..depth];
                    let column = weights[index % columns..].iter().step_by(columns);
                    row.iter().zip(column).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
                }
            }),
            Product::Conv(problem) => {
                let geometry = problem.geometry()?;
                let reference = Reference { geometry, input: &input, weights: &weights };
                Box::new(move |index| reference.sum(index))
            }
        };
        let terms = weights.len() / columns.max(1);
        let sample = Sample::draw(&mut random, &output_shape, terms, |index| {
            let bias = bias.as_ref().map_or(0.0, |bias| f64::from(bias[index % columns]));
            let residual = residual.as_ref().map_or(0.0, |residual| f64::from(residual[index]));
            operator.activation.in_double(sum(index) + bias + residual)
        });
        drop(sum);
        let output = AlignedBuffer::zeroed(output_elements)?;
        Ok(Self {
            operator: *operator,
            input,
            residual,
            output,
            sample,
            weights,
            bias,
            packed: Vec::new(),
        })
    }

    /// The weights packed for a candidate, or why they cannot be.
    pub(super) fn pack(
        &mut self,
        candidate: &Candidate,
        isa: Isa,
    ) -> Result<PackedWeights, String> {
        let form = PackedWeights::form(&self.operator, candidate, isa);
        if let Some((_, packed)) = self.packed.iter().find(|(known, _)| *known == form) {
            return Ok(packed.clone());
        }
        if self.packed.len() == MOST_FORMS {
            self.packed.remove(0);
        }
        let packed = PackedWeights::pack(&self.operator, candidate, &self.weights, isa)?;
        self.packed.push((form, packed.clone()));
        Ok(packed)
    }

    /// The candidate with packed weights, or why it cannot be had.
    pub(super) fn prepare(
        &self,
        candidate: &Candidate,
        weights: &PackedWeights,
    ) -> Result<PreparedKernel, String> {
        PreparedKernel::new(&self.operator, candidate, weights, self.bias.as_deref())
    }

    /// How much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        let residual = self.residual.as_ref().map_or(0, |residual| residual.len());
        let operands = self.input.len() + self.output.len() + self.weights.len() + residual;
        let packed = self.packed.iter().flat_map(|(_, packed)| packed.values());
        let packed: usize = packed.map(<[f32]>::len).sum();
        (operands + packed) * size_of::<f32>()
    }
}
