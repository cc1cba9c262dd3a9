//! Recurrent layers.

use weft_ir::Tensor;

use super::{Case, Operand, floats, none, several, weights};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (operator, gates) in [("RNN", 1), ("GRU", 3), ("LSTM", 4)] {
        for (direction, directions) in [("forward", 1), ("reverse", 1), ("bidirectional", 2)] {
            for linear in [0i64, 1] {
                if linear == 1 && operator != "GRU" {
                    continue;
                }
                let mut attributes = none().with("direction", direction).with("hidden_size", 9i64);
                if operator == "GRU" {
                    attributes = attributes.with("linear_before_reset", linear);
                }
                let sizes = Sizes { gates, directions, hidden: 9 };
                cases.push(several(operator, &sizes.operands(false), 2, attributes.clone()));
                cases.push(several(operator, &sizes.operands(true), 1, attributes));
            }
        }
    }
    cases.push(batch_first());
    cases
}

/// An LSTM whose sequences stand first, with a first cell and all of its outputs.
fn batch_first() -> Case {
    let mut operands = Sizes { gates: 4, directions: 2, hidden: 9 }.operands(true);
    operands[0] = floats(&[3, 6, 7]);
    operands[5] = floats(&[3, 2, 9]);
    operands.push(floats(&[3, 2, 9]));
    let attributes = none().with("direction", "bidirectional").with("layout", 1i64);
    several("LSTM", &operands, 3, attributes)
}

struct Sizes {
    gates: usize,
    directions: usize,
    hidden: usize,
}

impl Sizes {
    /// Sequences of 6 steps of 7 features, with or without a bias, lengths and first states.
    fn operands(&self, is_full: bool) -> Vec<Operand> {
        let &Self { gates, directions, hidden } = self;
        let rows = gates * hidden;
        let mut operands = vec![
            floats(&[6, 3, 7]),
            quarter(weights(&[directions, rows, 7])),
            quarter(weights(&[directions, rows, hidden])),
        ];
        if is_full {
            operands.push(quarter(weights(&[directions, 2 * rows])));
            operands.push(Operand::Given(Tensor::vector(vec![6i32, 2, 0])));
            operands.push(floats(&[directions, 3, hidden]));
        }
        operands
    }
}

fn quarter(operand: Operand) -> Operand {
    let Operand::Constant(tensor) = operand else { unreachable!("weights are constants") };
    let elements = tensor.elements::<f32>().unwrap().iter().map(|x| x / 4.0).collect();
    Operand::Constant(Tensor::from_vec(tensor.shape().to_vec(), elements).unwrap())
}
