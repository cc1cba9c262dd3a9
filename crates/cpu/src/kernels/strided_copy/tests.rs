use proptest::prelude::*;

use super::*;
use crate::kernels::testing::{run_on, supported_isas, values};

/// Runs a copy of `f32` and of bytes, and compares both with element-by-element indexing of the source.
fn check(copy: &StridedCopy, source_elements: usize, expected: &[Option<usize>]) {
    let floats = values(source_elements, 1);
    let bytes: Vec<u8> = (0..source_elements).map(|index| (index * 7 % 161) as u8).collect();
    for isa in supported_isas() {
        let output = run_on(isa, expected.len(), |worker, output| {
            // SAFETY: every worker of the pool runs this.
            unsafe { copy.run(worker, &floats, output) };
        });
        let byte_output = run_on(isa, expected.len(), |worker, output| {
            // SAFETY: every worker of the pool runs this.
            unsafe { copy.run(worker, &bytes, output) };
        });
        for (index, &place) in expected.iter().enumerate() {
            match place {
                Some(place) => {
                    assert_eq!(output[index], floats[place], "element {index} of {copy:?}");
                    assert_eq!(byte_output[index], bytes[place], "byte {index} of {copy:?}");
                }
                None => assert!(output[index].is_nan(), "element {index} is not part of the copy"),
            }
        }
    }
}

/// Where the elements of a transposed tensor come from.
fn transposed(shape: &[usize], permutation: &[usize]) -> Vec<Option<usize>> {
    let strides = dense_strides(shape).unwrap();
    let elements: usize = shape.iter().product();
    (0..elements)
        .map(|mut index| {
            let mut place = 0;
            for &axis in permutation.iter().rev() {
                place += index % shape[axis] * strides[axis];
                index /= shape[axis];
            }
            Some(place)
        })
        .collect()
}

#[test]
fn transpositions_of_networks() {
    let cases: [(&[usize], &[usize]); 9] = [
        (&[2, 3, 20, 17], &[0, 2, 3, 1]),
        (&[1, 24, 30, 64], &[0, 3, 1, 2]),
        (&[2, 16, 12, 8], &[0, 2, 1, 3]),
        (&[2, 16, 12, 8], &[0, 2, 3, 1]),
        (&[100, 70], &[1, 0]),
        (&[9, 5], &[0, 1]),
        (&[2, 3, 4, 5, 6], &[4, 2, 0, 3, 1]),
        (&[], &[]),
        (&[3, 0, 2], &[2, 1, 0]),
    ];
    for (shape, permutation) in cases {
        let copy = StridedCopy::transpose(shape, permutation).unwrap();
        check(&copy, shape.iter().product(), &transposed(shape, permutation));
    }
    assert!(StridedCopy::transpose(&[2, 3], &[0, 0]).is_err());
    assert!(StridedCopy::transpose(&[usize::MAX, 3], &[0, 1]).is_err());
}

#[test]
fn slices_go_backwards_and_skip() {
    let copy = StridedCopy::slice(&[4, 7], &[3, 1], &[-2, 3], &[2, 2]).unwrap();
    check(&copy, 28, &[22, 25, 8, 11].map(Some));
    let copy = StridedCopy::slice(&[3, 5000], &[1, 4], &[1, 1], &[1, 4990]).unwrap();
    check(&copy, 15000, &(5004..9994).map(Some).collect::<Vec<_>>());
    for (starts, steps, sizes) in
        [([4, 0], [1, 1], [1, 1]), ([0, 5], [1, 2], [1, 2]), ([1, 0], [-1, 1], [3, 1])]
    {
        assert!(StridedCopy::slice(&[4, 7], &starts, &steps, &sizes).is_err());
    }
}

#[test]
fn parts_of_concatenations_and_splits() {
    let copy = StridedCopy::concat_part(&[2, 2, 3], 1, 1, 4).unwrap();
    let mut expected = vec![None; 24];
    for index in 0..12 {
        expected[index / 6 * 12 + 3 + index % 6] = Some(index);
    }
    check(&copy, 12, &expected);
    let copy = StridedCopy::split_part(&[2, 2, 3], 1, 1, 4).unwrap();
    check(
        &copy,
        24,
        &(0..12).map(|index| Some(index / 6 * 12 + 3 + index % 6)).collect::<Vec<_>>(),
    );
    assert!(StridedCopy::split_part(&[2, 2, 3], 1, 3, 4).is_err());
    assert!(StridedCopy::concat_part(&[2, 2, 3], 3, 0, 4).is_err());
}

#[test]
fn expansion_repeats() {
    let axes = [
        CopyAxis { size: 3, source_stride: 0, target_stride: 8 },
        CopyAxis { size: 4, source_stride: 1, target_stride: 2 },
        CopyAxis { size: 2, source_stride: 0, target_stride: 1 },
    ];
    let copy = StridedCopy::new(&axes, 4, 0, 24, 0).unwrap();
    check(&copy, 4, &(0..24).map(|index| Some(index % 8 / 2)).collect::<Vec<_>>());
    assert!(StridedCopy::new(&axes, 3, 0, 24, 0).is_err());
    assert!(StridedCopy::new(&axes, 4, 0, 23, 0).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_permutation(
        shape in prop::collection::vec(1usize..20, 1..5),
        keys in prop::collection::vec(any::<u32>(), 5),
    ) {
        let mut permutation: Vec<usize> = (0..shape.len()).collect();
        permutation.sort_by_key(|&axis| keys[axis]);
        let copy = StridedCopy::transpose(&shape, &permutation).unwrap();
        check(&copy, shape.iter().product(), &transposed(&shape, &permutation));
    }
}
