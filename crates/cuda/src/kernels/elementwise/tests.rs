use super::*;
use proptest::prelude::*;
use weft_ir::broadcast::{broadcast_indices, broadcast_shapes};

fn input(storage: Storage, shape: &[usize]) -> ChainInput {
    ChainInput { storage, shape: shape.to_vec(), argument: Argument::Input(0) }
}

fn chain(inputs: Vec<ChainInput>, output: Storage, shape: &[usize]) -> Chain {
    Chain {
        inputs,
        statements: vec!["float b0 = a0 + a1;".into()],
        result: "b0".into(),
        output,
        shape: shape.to_vec(),
    }
}

#[test]
fn axes_merge_as_far_as_every_input_allows() {
    let shape = [2, 7, 7, 64];
    let dense = || input(Storage::F16, &shape);
    let sizes = |other: &[usize]| Axes::of(&shape, &[dense(), input(Storage::F16, other)]).sizes;
    assert_eq!(sizes(&shape), [6272]);
    assert_eq!(sizes(&[]), [6272]);
    assert_eq!(sizes(&[1, 1, 1, 1]), [6272]);
    assert_eq!(sizes(&[64]), [64, 98]);
    assert_eq!(sizes(&[2, 1, 1, 64]), [64, 49, 2]);
    assert_eq!(sizes(&[2, 7, 7, 1]), [64, 98]);
    assert_eq!(Axes::of(&[1, 1], &[input(Storage::F16, &[])]).sizes, [1]);
}

#[test]
fn threads_compute_as_many_neighbours_as_fit_their_loads() {
    let width = |storages: [Storage; 2], shapes: [&[usize]; 2], shape: &[usize]| {
        let inputs = storages.iter().zip(shapes).map(|(&s, shape)| input(s, shape)).collect();
        let chain = chain(inputs, storages[0], shape);
        Axes::of(shape, &chain.inputs).width(&chain)
    };
    let f16 = [Storage::F16; 2];
    assert_eq!(width(f16, [&[5, 7], &[5, 7]], &[5, 7]), 8);
    assert_eq!(width(f16, [&[5, 12], &[12]], &[5, 12]), 4);
    assert_eq!(width(f16, [&[5, 7], &[7]], &[5, 7]), 1);
    assert_eq!(width([Storage::F16, Storage::F32], [&[5, 8], &[8]], &[5, 8]), 4);
    // What stays is no vector, however wide its elements are.
    assert_eq!(width([Storage::F16, Storage::I64], [&[5, 8], &[5, 1]], &[5, 8]), 8);
}

#[test]
fn the_generated_code_reads_what_moves_as_vectors() {
    let shape = [3, 8];
    let inputs = vec![input(Storage::F16, &shape), input(Storage::F32, &[3, 1])];
    let launch = chain(inputs, Storage::F16, &shape).launch().unwrap();
    assert_eq!(
        launch.source.generated,
        "#define PARAMETERS const __half *p0, const float *p1\n\
         #define ARGUMENTS p0, p1\n\
         #define MOVES 1, 0\n\
         #define READ(COUNT) auto x0 = moving<COUNT>(p0 + places[0]); auto x1 = staying(p1 + places[1]);\n\
         #define EVALUATE(i) evaluate(at(x0, i), at(x1, i))\n\
         #define NUMBERS float a0, float a1\n\
         #define RESULT float\n\
         #define STATEMENTS \\\n    float b0 = a0 + a1; \\\n    return b0;\n"
    );
    assert_eq!(launch.grid, [1, 1, 1]);
}

#[test]
fn nothing_is_launched_for_nothing() {
    let inputs = vec![input(Storage::F16, &[0, 3]), input(Storage::F16, &[])];
    assert!(chain(inputs, Storage::F16, &[0, 3]).launch().is_none());
}

proptest! {
    /// The kernel's arithmetic, from thread to the place of every input.
    #[test]
    fn every_element_is_computed_from_its_own_inputs(
        ones in prop::collection::vec(prop::collection::vec(any::<bool>(), 4), 1..4),
        sizes in prop::collection::vec(1usize..5, 1..5),
        drop in 0usize..3,
    ) {
        let shapes: Vec<Vec<usize>> = ones
            .iter()
            .enumerate()
            .map(|(index, ones)| {
                let skip = (drop * index).min(sizes.len());
                let sized = sizes.iter().zip(ones).skip(skip);
                sized.map(|(&size, &one)| if one { 1 } else { size }).collect()
            })
            .collect();
        let references: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
        let shape = broadcast_shapes(&references).unwrap();
        let inputs: Vec<ChainInput> = shapes.iter().map(|s| input(Storage::F16, s)).collect();
        let axes = Axes::of(&shape, &inputs);
        let width = axes.width(&chain(inputs, Storage::F16, &shape));
        let count: usize = shape.iter().product();
        for (index, from) in shapes.iter().enumerate() {
            let expected = broadcast_indices(from, &shape);
            let mut read = Vec::new();
            for first in (0..count).step_by(width) {
                let (mut rest, mut place) = (first, 0);
                for (axis, &size) in axes.sizes.iter().enumerate() {
                    place += rest % size * axes.strides[index][axis];
                    rest /= size;
                }
                let moves = usize::from(axes.moves(index));
                let run = width.min(count - first);
                read.extend((0..run).map(|neighbour| place + neighbour * moves));
            }
            prop_assert_eq!(&read, &expected);
            // Vectors are read from multiples of their length.
            if axes.moves(index) && axes.sizes.len() > 1 {
                prop_assert!(axes.strides[index][1..].iter().all(|stride| stride % width == 0));
            }
        }
    }
}
