//! LSTM: a recurrent layer with a cell that gates write, forget and read.

use std::sync::Arc;

use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::value::Value;

use super::layer::{Layer, Parameters, State};

/// Gates lie in the order input, output, forget, cell; peepholes in the order input, output, forget.
#[derive(Debug)]
struct Lstm {
    layer: Layer,
    /// Whether the forget gate is one minus the input gate.
    coupled: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Lstm {
        layer: Layer::parse(source, 4, &["Sigmoid", "Tanh", "Tanh"])?,
        coupled: source.attributes.flag_or("input_forget", false)?,
    }))
}

impl Lstm {
    fn step(&self, parameters: &Parameters<'_>, projected: &[f64], state: &mut State) {
        let size = parameters.hidden_size;
        let previous = std::mem::take(&mut state.hidden);
        let sum = |row: usize| {
            projected[row] + parameters.recur(row, &previous) + parameters.recurrence_bias[row]
        };
        for unit in 0..size {
            let peep = |gate: usize, cell: f64| parameters.peepholes[gate * size + unit] * cell;
            let cell = state.cell[unit];
            let input = parameters.activate(0, sum(unit) + peep(0, cell));
            let forget = if self.coupled {
                1.0 - input
            } else {
                parameters.activate(0, sum(2 * size + unit) + peep(2, cell))
            };
            let candidate = parameters.activate(1, sum(3 * size + unit));
            let cell = forget * cell + input * candidate;
            let output = parameters.activate(0, sum(size + unit) + peep(1, cell));
            state.cell[unit] = cell;
            state.hidden.push(output * parameters.activate(2, cell));
        }
    }
}

impl Operator for Lstm {
    fn name(&self) -> &'static str {
        "LSTM"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        self.layer.run(inputs, |parameters, projected, state| {
            self.step(parameters, projected, state);
        })
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(self.layer.infer(inputs))
    }

    fn flops(&self, inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        self.layer.flops(inputs)
    }
}

#[cfg(test)]
mod tests {
    use crate::attribute::Attributes;
    use crate::builder::standard_operator;
    use crate::data_type::DataType;
    use crate::fact::Fact;
    use crate::operator::{InputFacts, Inputs};
    use crate::tensor::Tensor;
    use crate::value::Value;

    fn ramp(shape: &[usize], step: f64) -> Tensor {
        let count = shape.iter().product::<usize>();
        let elements = (0..count).map(|index| ((index * 7 % 11) as f64 - 5.0) * step).collect();
        Tensor::from_vec::<f64>(shape.to_vec(), elements).unwrap()
    }

    fn run(attributes: Attributes, inputs: &[Option<Tensor>]) -> Vec<Tensor> {
        let values: Vec<Option<Value>> =
            inputs.iter().map(|tensor| tensor.clone().map(Value::Tensor)).collect();
        let lstm = standard_operator("LSTM", 14, &attributes).unwrap();
        let outputs = lstm.evaluate(&Inputs::new(&values, 3)).unwrap();
        outputs.into_iter().map(|value| value.into_tensor().unwrap()).collect()
    }

    #[test]
    fn a_reversed_walk_starts_at_each_sequence_end() {
        let (w, r) = (ramp(&[1, 8, 3], 0.1), ramp(&[1, 8, 2], 0.2));
        let x = ramp(&[4, 2, 3], 0.3);
        let lengths = Tensor::vector(vec![4i32, 2]);
        let reverse = Attributes::new().with("direction", "reverse");
        let given = [Some(x.clone()), Some(w.clone()), Some(r.clone()), None, Some(lengths)];
        let outputs = run(reverse, &given);

        // The second sequence alone, its two steps turned round by hand.
        let elements = x.elements::<f64>().unwrap();
        let turned = [&elements[9..12], &elements[3..6]].concat();
        let turned = Tensor::from_vec(vec![2, 1, 3], turned).unwrap();
        let expected = run(Attributes::new(), &[Some(turned), Some(w), Some(r)]);

        let all = outputs[0].elements::<f64>().unwrap();
        let forward = expected[0].elements::<f64>().unwrap();
        assert_eq!(&all[2..4], &forward[2..4]);
        assert_eq!(&all[6..8], &forward[0..2]);
        assert_eq!((&all[10..12], &all[14..16]), (&[0.0; 2][..], &[0.0; 2][..]));
        for state in [1, 2] {
            let last = outputs[state].elements::<f64>().unwrap();
            assert_eq!(&last[2..4], expected[state].elements::<f64>().unwrap());
        }
    }

    #[test]
    fn both_directions_and_batch_first_agree_with_one_at_a_time() {
        let (w, r) = (ramp(&[2, 8, 3], 0.1), ramp(&[2, 8, 2], 0.2));
        let half = |tensor: &Tensor, index: usize| {
            let elements = tensor.elements::<f64>().unwrap();
            let size = elements.len() / 2;
            let shape = vec![1, tensor.shape()[1], tensor.shape()[2]];
            Tensor::from_vec(shape, elements[index * size..][..size].to_vec()).unwrap()
        };
        let x = ramp(&[1, 4, 3], 0.3);
        let both = Attributes::new().with("direction", "bidirectional").with("layout", 1);
        let outputs = run(both, &[Some(x.clone()), Some(w.clone()), Some(r.clone())]);
        assert_eq!(outputs[0].shape(), &[1, 4, 2, 2]);
        let all = outputs[0].elements::<f64>().unwrap();
        for (index, direction) in ["forward", "reverse"].into_iter().enumerate() {
            let attributes = Attributes::new().with("direction", direction).with("layout", 1);
            let weights = [Some(x.clone()), Some(half(&w, index)), Some(half(&r, index))];
            let one = run(attributes, &weights);
            let one = one[0].elements::<f64>().unwrap();
            for step in 0..4 {
                assert_eq!(&all[step * 4 + index * 2..][..2], &one[step * 2..][..2]);
            }
        }
    }

    #[test]
    fn wrong_weights_are_refused() {
        let x = Some(Value::Tensor(ramp(&[4, 2, 3], 1.0)));
        let lstm = standard_operator("LSTM", 14, &Attributes::new()).unwrap();
        for (w, r) in [
            (vec![1, 8, 4], vec![1, 8, 2]),
            (vec![1, 6, 3], vec![1, 6, 2]),
            (vec![2, 8, 3], vec![2, 8, 2]),
            (vec![8, 3], vec![8, 2]),
        ] {
            let [w, r] = [w, r].map(|shape| Some(Value::Tensor(ramp(&shape, 1.0))));
            assert!(lstm.evaluate(&Inputs::new(&[x.clone(), w, r], 1)).is_err());
        }
    }

    #[test]
    fn unknown_dimensions_stay_unknown() {
        let x = Fact::partial(Some(DataType::F32), Some(vec![None, Some(1), Some(3)]));
        let (w, r) = (Fact::new(DataType::F32, &[1, 8, 3]), Fact::new(DataType::F32, &[1, 8, 2]));
        let lstm = standard_operator("LSTM", 14, &Attributes::new()).unwrap();
        let facts = lstm.infer(&InputFacts::new(&[Some(&x), Some(&w), Some(&r)], 2)).unwrap();
        assert_eq!(facts[0].dimensions, Some(vec![None, Some(1), Some(1), Some(2)]));
        assert_eq!(facts[1].dimensions, Some(vec![Some(1), Some(1), Some(2)]));
        assert_eq!(facts.len(), 2);
    }
}
