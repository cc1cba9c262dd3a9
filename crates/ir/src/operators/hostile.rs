//! Every operator on inputs that no model should give it: it must refuse them or compute, and never panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use half::f16;

use crate::attribute::Attributes;
use crate::data_type::DataType;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Registration};
use crate::tensor::{Tensor, TensorData};
use crate::value::Value;

/// A small generator of its own, so that a failure repeats.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % limit as u64) as usize
    }

    fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    fn shape(&mut self) -> Vec<usize> {
        let mut shape: Vec<usize> =
            (0..self.below(6)).map(|_| self.pick(&[0, 1, 1, 2, 2, 3, 4, 8])).collect();
        // An empty tensor may name dimensions far larger than anything in it.
        if shape.contains(&0)
            && self.below(3) == 0
            && let Some(size) = shape.iter_mut().find(|size| **size == 3)
        {
            *size = self.pick(&[1 << 12, 1 << 19]);
        }
        shape
    }

    fn tensor(&mut self, shape: Vec<usize>) -> Tensor {
        let count = crate::tensor::element_count(&shape).expect("a shape that exists");
        let numbers: Vec<i64> =
            (0..count).map(|_| self.pick(&[0, 1, 1, 2, 3, -1, 100, i64::MAX, i64::MIN])).collect();
        let floats = || numbers.iter().map(|&number| number as f32 * 0.5);
        let bytes = || numbers.iter().map(|&number| number as u8);
        let data = match self.below(12) {
            0..=3 => TensorData::F32(floats().collect::<Vec<_>>().into()),
            4 => TensorData::F16(floats().map(f16::from_f32).collect::<Vec<_>>().into()),
            5 => TensorData::F64(floats().map(f64::from).collect::<Vec<_>>().into()),
            6 => TensorData::I64(numbers.into()),
            7 => TensorData::I32(numbers.iter().map(|&e| e as i32).collect::<Vec<_>>().into()),
            8 => TensorData::U8(bytes().collect::<Vec<_>>().into()),
            9 => TensorData::I8(numbers.iter().map(|&e| e as i8).collect::<Vec<_>>().into()),
            10 => TensorData::Bool(numbers.iter().map(|&e| e > 0).collect::<Vec<_>>().into()),
            _ => {
                let codes: Vec<u8> = bytes().map(|code| code & 7).collect();
                let data_type = self.pick(&[DataType::I4, DataType::U2, DataType::F8E4M3FN]);
                TensorData::Narrow(data_type, codes.into())
            }
        };
        Tensor::new(shape, data).expect("as many elements as the shape has")
    }

    /// Inputs that often share shapes and types, so that some get past the first check.
    fn inputs(&mut self) -> Vec<Option<Tensor>> {
        let mut tensors: Vec<Option<Tensor>> = Vec::new();
        for _ in 0..self.below(10) {
            let earlier = self.below(tensors.len().max(1));
            let tensor = match (self.below(4), tensors.get(earlier)) {
                (0, _) => None,
                (1 | 2, Some(Some(earlier))) => Some(earlier.clone()),
                _ => {
                    let shape = self.shape();
                    Some(self.tensor(shape))
                }
            };
            tensors.push(tensor);
        }
        tensors
    }

    /// What may be known of a tensor: all of it, its shape, or some of its dimensions.
    fn fact(&mut self, tensor: &Tensor) -> Fact {
        match self.below(3) {
            0 => Fact::constant(tensor.clone()),
            1 => Fact::new(tensor.data_type(), tensor.shape()),
            _ => {
                let known = |&size: &usize| (self.below(2) == 0).then_some(size);
                let dimensions = tensor.shape().iter().map(known).collect();
                Fact::partial(Some(tensor.data_type()), Some(dimensions))
            }
        }
    }

    fn attributes(&mut self) -> Attributes {
        let mut attributes = Attributes::new();
        for name in [
            "axis",
            "axes",
            "group",
            "layout",
            "hidden_size",
            "block_size",
            "q_num_heads",
            "kv_num_heads",
            "num_heads",
            "onesided",
            "inverse",
            "output_dtype",
            "to",
            "pads",
            "strides",
            "kernel_shape",
            "dilations",
            "is_causal",
            "keepdims",
        ] {
            if self.below(5) != 0 {
                continue;
            }
            let value = self.pick(&[0, 1, 1, 2, 2, 3, -1, 10, i64::MAX, i64::MIN]);
            let is_list =
                matches!(name, "axes" | "pads" | "strides" | "kernel_shape" | "dilations");
            attributes = if is_list {
                attributes.with(name, vec![value; 1 + self.below(4)])
            } else {
                attributes.with(name, value)
            };
        }
        if self.below(3) == 0 {
            let direction = self.pick(&["forward", "reverse", "bidirectional"]);
            attributes = attributes.with("direction", direction);
        }
        if self.below(3) == 0 {
            let rule = self.pick(&["linear", "gated", "delta", "gated_delta"]);
            attributes = attributes.with("update_rule", rule);
        }
        attributes
    }
}

/// One node on drawn inputs; what went wrong, where anything did.
fn try_once(registration: &Registration, draw: &mut Draw) -> Result<(), String> {
    let attributes = draw.attributes();
    let inputs = draw.inputs();
    let source = NodeSource {
        domain: registration.domain,
        operator: registration.name,
        opset: draw.pick(&[9, 12, 17, 20, 24]),
        attributes: &attributes,
        input_count: inputs.len(),
        output_count: 1 + draw.below(4),
    };
    let facts: Vec<Option<Fact>> =
        inputs.iter().map(|input| input.as_ref().map(|tensor| draw.fact(tensor))).collect();
    let values: Vec<Option<Value>> =
        inputs.iter().map(|input| input.clone().map(Value::Tensor)).collect();
    let run = || {
        let operator = (registration.build)(&source).ok()?;
        let known: Vec<Option<&Fact>> = facts.iter().map(Option::as_ref).collect();
        let inferred = operator.infer(&InputFacts::new(&known, source.output_count));
        let outputs = operator.evaluate(&Inputs::new(&values, source.output_count)).ok()?;
        Some((inferred, outputs))
    };
    let describe = |problem: String| format!("{source:?} on {facts:?}: {problem}");
    let outcome = catch_unwind(AssertUnwindSafe(run));
    let outcome = outcome.map_err(|_| describe("panicked".into()))?;
    let Some((inferred, outputs)) = outcome else { return Ok(()) };
    let inferred = inferred.map_err(|problem| describe(format!("inference: {problem}")))?;
    for (fact, output) in inferred.iter().zip(&outputs) {
        if let Some(tensor) = output.tensor()
            && !agrees(fact, tensor)
        {
            let computed = Fact::new(tensor.data_type(), tensor.shape());
            return Err(describe(format!("inferred {fact}, computed {computed}")));
        }
    }
    Ok(())
}

fn agrees(fact: &Fact, tensor: &Tensor) -> bool {
    let fits = |dimensions: &Vec<Option<usize>>| {
        let mut pairs = dimensions.iter().zip(tensor.shape());
        dimensions.len() == tensor.rank()
            && pairs.all(|(known, &size)| known.is_none_or(|known| known == size))
    };
    fact.data_type.is_none_or(|known| known == tensor.data_type())
        && fact.dimensions.as_ref().is_none_or(fits)
}

#[test]
fn no_operator_panics_or_contradicts_itself() {
    let mut draw = Draw(7);
    let problems: Vec<String> = super::registrations()
        .filter_map(|registration| (0..300).find_map(|_| try_once(registration, &mut draw).err()))
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
