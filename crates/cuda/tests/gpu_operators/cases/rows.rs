//! Operators along lines, and by index.

use weft_ir::Tensor;

use super::{Case, Operand, bools, floats, integers, integers_32, none, one, weights};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    lines(&mut cases);
    normalisations(&mut cases);
    indexed(&mut cases);
    cases
}

fn lines(cases: &mut Vec<Case>) {
    let along = |axis: i64| none().with("axis", axis);
    for operator in ["Softmax", "LogSoftmax"] {
        for shape in
            [&[3, 1][..], &[2, 5, 7], &[4, 64], &[3, 100], &[5, 128], &[2, 1030], &[1, 3001]]
        {
            cases.push(one(operator, &[floats(shape)], along(-1)));
        }
        cases.push(one(operator, &[floats(&[2, 5, 7])], along(1)));
        cases.push(one(operator, &[floats(&[9, 16])], along(0)));
    }
    for operator in ["ArgMax", "ArgMin"] {
        cases.push(one(operator, &[floats(&[5, 70])], along(1)));
        cases.push(one(operator, &[floats(&[5, 7, 3])], along(1).with("keepdims", 0i64)));
        cases.push(one(operator, &[integers(&[6, 40], -3, 3)], along(1)));
        let last = along(-1).with("select_last_index", 1i64);
        cases.push(one(operator, &[integers_32(&[6, 40], -3, 3)], last));
    }
}

fn normalisations(cases: &mut Vec<Case>) {
    for shape in [&[3, 16][..], &[2, 5, 768], &[4, 77], &[3, 4096], &[1, 1]] {
        let width = &shape[shape.len() - 1..];
        let x = floats(shape);
        cases.push(one("LayerNormalization", &[x.clone(), weights(width), weights(width)], none()));
        cases.push(one("LayerNormalization", &[x, floats(width)], none()));
    }
    let axis = none().with("axis", 1i64).with("epsilon", 0.01f32);
    cases.push(one("LayerNormalization", &[floats(&[3, 4, 6]), weights(&[4, 6])], axis));
    for shape in [&[2usize, 3, 5, 4][..], &[1, 8, 40, 40]] {
        let channels = &shape[1..2];
        let operands = [floats(shape), weights(channels), weights(channels)];
        cases.push(one("InstanceNormalization", &operands, none()));
    }
    let groups = |count: i64| none().with("num_groups", count);
    let operands = [floats(&[2, 6, 5, 4]), weights(&[3]), weights(&[3])];
    cases.push(one("GroupNormalization", &operands, groups(3)));
}

fn indexed(cases: &mut Vec<Case>) {
    let along = |axis: i64| none().with("axis", axis);
    let table = floats(&[11, 24]);
    cases.push(one("Gather", &[table.clone(), integers(&[2, 5], -11, 11)], along(0)));
    cases.push(one("Gather", &[table.clone(), integers_32(&[7], 0, 24)], along(1)));
    cases.push(one("Gather", &[table, Operand::Constant(Tensor::scalar(-2i64))], along(0)));
    cases.push(one("Gather", &[bools(&[3, 5, 4]), integers(&[2], 0, 5)], along(1)));
    cases.push(one("Gather", &[integers(&[9], -50, 50), integers(&[4], 0, 9)], along(0)));
    cases.push(one("Gather", &[weights(&[30, 64]), integers(&[1, 9], 0, 30)], along(0)));
    cases.push(one("GatherElements", &[floats(&[4, 6]), integers(&[4, 3], -6, 6)], along(1)));
    cases.push(one("GatherElements", &[floats(&[4, 6, 2]), integers(&[7, 6, 1], 0, 4)], along(0)));
}
