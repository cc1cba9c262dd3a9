//! Operators that only move elements.

use super::{Case, bools, floats, integers, list, none, one, scalar, several};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let permuted = |perm: &[i64]| none().with("perm", perm.to_vec());
    for (shape, perm) in [
        (&[2, 3, 5, 7][..], &[0i64, 2, 3, 1][..]),
        (&[2, 5, 7, 3], &[0, 3, 1, 2]),
        (&[1, 3, 33, 40], &[0, 2, 3, 1]),
        (&[1, 40, 33, 64], &[0, 3, 1, 2]),
        (&[2, 6, 4, 16], &[0, 2, 1, 3]),
        (&[70, 67], &[1, 0]),
        (&[5, 4, 3, 2, 2], &[4, 2, 0, 3, 1]),
        (&[1, 1, 9], &[2, 0, 1]),
        (&[3, 4, 130], &[2, 1, 0]),
    ] {
        cases.push(one("Transpose", &[floats(shape)], permuted(perm)));
    }
    cases.push(one("Transpose", &[integers(&[4, 9], -9, 9)], none()));
    cases.push(one("Transpose", &[bools(&[40, 9])], none()));

    let along = |axis: i64| none().with("axis", axis);
    cases.push(one("Concat", &[floats(&[2, 3, 8]), floats(&[2, 3, 24])], along(2)));
    cases.push(one("Concat", &[floats(&[2, 3]), floats(&[2, 5]), floats(&[2, 1])], along(-1)));
    cases.push(one("Concat", &[floats(&[3, 4]), floats(&[0, 4]), floats(&[2, 4])], along(0)));
    let many: Vec<_> = (1..=19).map(|size| floats(&[3, size])).collect();
    cases.push(one("Concat", &many, along(1)));
    cases.push(one("Concat", &[integers(&[2, 3], 0, 9), integers(&[2, 4], 0, 9)], along(1)));

    cases.push(several("Split", &[floats(&[4, 6, 16])], 2, along(1).with("num_outputs", 2i64)));
    cases.push(several("Split", &[floats(&[4, 7]), list(&[1, 4, 2])], 3, along(1)));
    cases.push(several("Split", &[floats(&[5, 3]), list(&[2, 0, 3])], 3, along(0)));

    let slice = |shape: &[usize], bounds: [&[i64]; 4]| {
        let [starts, ends, axes, steps] = bounds.map(list);
        one("Slice", &[floats(shape), starts, ends, axes, steps], none())
    };
    cases.push(slice(&[5, 6], [&[1], &[4], &[1], &[1]]));
    cases.push(slice(&[5, 64], [&[8], &[40], &[-1], &[1]]));
    cases.push(slice(&[5, 6, 7], [&[-1, 0], &[i64::MIN, 7], &[0, 2], &[-2, 3]]));
    cases.push(slice(&[2, 9, 9, 4], [&[1, 0], &[9, 9], &[1, 2], &[2, 2]]));
    cases.push(slice(&[4, 4], [&[3], &[3], &[0], &[1]]));

    let pad = |shape: &[usize], amounts: &[i64], mode: &str| {
        let mut operands = vec![floats(shape), list(amounts)];
        operands.extend((mode == "constant").then(|| scalar(-1.5)));
        one("Pad", &operands, none().with("mode", mode))
    };
    for mode in ["constant", "edge", "reflect", "wrap"] {
        cases.push(pad(&[2, 5, 6, 8], &[0, 1, 2, 0, 0, 2, 1, 0], mode));
        cases.push(pad(&[3, 7], &[1, -2, 2, 3], mode));
        cases.push(pad(&[9], &[4, 3], mode));
    }
    cases.push(one("Pad", &[integers(&[3, 4], 0, 9), list(&[1, 1, 1, 1])], none()));

    cases.push(one("Expand", &[floats(&[3, 1]), list(&[2, 3, 5])], none()));
    cases.push(one("Expand", &[floats(&[1, 8]), list(&[7, 8])], none()));
    cases.push(one("Expand", &[floats(&[1]), list(&[4, 5])], none()));
    cases.push(one("Tile", &[floats(&[2, 3]), list(&[2, 3])], none()));
    cases.push(one("Tile", &[floats(&[5, 8]), list(&[3, 1])], none()));

    let blocks = |mode: &str| none().with("blocksize", 2i64).with("mode", mode);
    cases.push(one("DepthToSpace", &[floats(&[2, 8, 3, 5])], blocks("DCR")));
    cases.push(one("DepthToSpace", &[floats(&[2, 8, 3, 5])], blocks("CRD")));
    cases.push(one("SpaceToDepth", &[floats(&[2, 3, 4, 6])], none().with("blocksize", 2i64)));
    cases
}
