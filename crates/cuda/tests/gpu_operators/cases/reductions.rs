//! Reductions and pools.

use super::{Case, floats, integers, integers_32, list, none, one, positive};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    reductions(&mut cases);
    pools(&mut cases);
    cases
}

fn reductions(cases: &mut Vec<Case>) {
    let shapes: [(&[usize], &[i64]); 10] = [
        (&[3, 37], &[1]),
        (&[3, 64], &[-1]),
        (&[5, 33, 16], &[1]),
        (&[2, 300, 72], &[1]),
        (&[2, 7, 3], &[0]),
        (&[2, 7, 3, 5], &[0, 2]),
        (&[2, 7, 3, 5], &[1, 3]),
        (&[4, 1, 6], &[1]),
        (&[2, 1500], &[1]),
        (&[5, 4], &[]),
    ];
    for (shape, axes) in shapes {
        for operator in ["ReduceMean", "ReduceMax", "ReduceSumSquare"] {
            cases.push(one(operator, &[floats(shape), list(axes)], none()));
        }
    }
    for operator in
        ["ReduceSum", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSumExp"]
    {
        cases.push(one(operator, &[floats(&[3, 5, 8]), list(&[1])], none().with("keepdims", 0i64)));
        cases.push(one(operator, &[floats(&[3, 11]), list(&[1])], none()));
    }
    cases.push(one("ReduceLogSum", &[positive(&[3, 11]), list(&[1])], none()));
    // One result of many elements, which several blocks share.
    cases.push(one("ReduceMean", &[floats(&[1, 2000, 24]), list(&[1])], none()));
    cases.push(one("ReduceMax", &[floats(&[2, 20_000]), list(&[1])], none()));
    for operator in ["ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1"] {
        cases.push(one(operator, &[integers(&[3, 9], -5, 5), list(&[1])], none()));
        cases.push(one(operator, &[integers_32(&[3, 9, 4], -5, 5), list(&[0])], none()));
    }
}

fn pools(cases: &mut Vec<Case>) {
    for operator in ["GlobalAveragePool", "GlobalMaxPool"] {
        cases.push(one(operator, &[floats(&[2, 24, 7, 5])], none()));
        cases.push(one(operator, &[floats(&[1, 3, 9])], none()));
    }
    cases.push(one("GlobalLpPool", &[floats(&[2, 8, 7, 5])], none()));
    let windows: [[&[i64]; 4]; 5] = [
        [&[3, 3], &[2, 2], &[1, 1, 1, 1], &[1, 1]],
        [&[2, 2], &[2, 2], &[0, 0, 0, 0], &[1, 1]],
        [&[3, 2], &[1, 3], &[0, 1, 2, 0], &[1, 1]],
        [&[2, 3], &[1, 1], &[1, 1, 1, 2], &[2, 2]],
        [&[7, 7], &[1, 1], &[0, 0, 0, 0], &[1, 1]],
    ];
    for [kernel, strides, pads, dilations] in windows {
        for ceil_mode in [0i64, 1] {
            let attributes = none()
                .with("kernel_shape", kernel)
                .with("strides", strides)
                .with("pads", pads)
                .with("dilations", dilations)
                .with("ceil_mode", ceil_mode);
            let image = [floats(&[2, 16, 8, 9])];
            cases.push(one("MaxPool", &image, attributes.clone()));
            cases.push(one("AveragePool", &image, attributes.clone()));
            let padded = attributes.with("count_include_pad", 1i64);
            cases.push(one("AveragePool", &[floats(&[1, 3, 8, 9])], padded));
        }
    }
    let window = |sizes: &[i64]| none().with("kernel_shape", sizes);
    cases.push(one("MaxPool", &[floats(&[2, 3, 9])], window(&[3])));
    cases.push(one("AveragePool", &[floats(&[1, 8, 5, 4, 6])], window(&[2, 2, 3])));
    cases.push(one("AveragePool", &[floats(&[1, 8, 6, 6])], window(&[6, 6])));
    let same = window(&[3, 3]).with("auto_pad", "SAME_LOWER").with("strides", vec![2i64, 2]);
    cases.push(one("MaxPool", &[floats(&[1, 8, 6, 7])], same));
}
