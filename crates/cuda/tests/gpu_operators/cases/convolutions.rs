//! Convolutions of every kind, with what is fused into them, and images that are resized.

use super::{Case, CaseBuilder, OPSET, Operand, floats, none, one, weights};
use weft_ir::{Attributes, Tensor};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    plain(&mut cases);
    stems(&mut cases);
    windowed(&mut cases);
    moved_by_one(&mut cases);
    streamed(&mut cases);
    few_rows(&mut cases);
    pooled(&mut cases);
    transposed(&mut cases);
    fused(&mut cases);
    cases.push(normalised());
    resized(&mut cases);
    cases
}

/// Constant weights small enough that sums stay within the range of the inputs, and still exact.
fn filters(shape: &[usize]) -> Operand {
    let Operand::Constant(tensor) = weights(shape) else { unreachable!() };
    let terms = shape[1..].iter().product::<usize>() as f32;
    let scale = 0.5f32.powi(terms.log2().ceil() as i32 / 2);
    let elements = tensor.elements::<f32>().unwrap().iter().map(|x| x * scale).collect();
    Operand::Constant(Tensor::from_vec(shape.to_vec(), elements).unwrap())
}

fn attributes(group: i64, strides: &[i64], pads: &[i64], dilations: &[i64]) -> Attributes {
    none()
        .with("group", group)
        .with("strides", strides)
        .with("pads", pads)
        .with("dilations", dilations)
}

fn plain(cases: &mut Vec<Case>) {
    let images: [(&[usize], &[usize], Attributes); 14] = [
        // Dense, of awkward sizes.
        (&[1, 3, 9, 8], &[8, 3, 3, 3], attributes(1, &[2, 2], &[1, 1, 1, 1], &[1, 1])),
        (&[2, 16, 7, 7], &[24, 16, 1, 1], attributes(1, &[1, 1], &[0, 0, 0, 0], &[1, 1])),
        (&[1, 13, 6, 5], &[7, 13, 3, 2], attributes(1, &[1, 2], &[0, 1, 2, 1], &[2, 1])),
        // Depthwise.
        (&[1, 16, 12, 12], &[16, 1, 3, 3], attributes(16, &[1, 1], &[1, 1, 1, 1], &[1, 1])),
        (&[2, 24, 9, 7], &[24, 1, 5, 5], attributes(24, &[2, 2], &[2, 2, 2, 2], &[1, 1])),
        (&[1, 17, 8, 8], &[17, 1, 3, 3], attributes(17, &[1, 1], &[2, 2, 2, 2], &[2, 2])),
        (&[8, 96, 51, 45], &[96, 1, 3, 3], attributes(96, &[1, 1], &[1, 1, 1, 1], &[1, 1])),
        (&[8, 96, 51, 45], &[96, 1, 3, 3], attributes(96, &[2, 2], &[0, 1, 1, 0], &[1, 1])),
        // Grouped, and depthwise with several filters.
        (&[1, 16, 6, 6], &[32, 4, 3, 3], attributes(4, &[1, 1], &[1, 1, 1, 1], &[1, 1])),
        (&[2, 6, 5, 5], &[9, 2, 3, 3], attributes(3, &[2, 1], &[1, 0, 1, 0], &[1, 1])),
        (&[1, 8, 5, 5], &[16, 1, 3, 3], attributes(8, &[1, 1], &[1, 1, 1, 1], &[1, 1])),
        // Lines and volumes.
        (&[2, 6, 19], &[8, 3, 5], attributes(2, &[2], &[2, 1], &[1])),
        (&[1, 8, 19], &[4, 8, 1], attributes(1, &[1], &[0, 0], &[1])),
        (
            &[1, 3, 5, 6, 4],
            &[4, 3, 3, 2, 2],
            attributes(1, &[1, 2, 1], &[1, 0, 0, 1, 1, 0], &[1, 1, 1]),
        ),
    ];
    for (image, kernel, attributes) in images {
        let bias = weights(&kernel[..1]);
        let operands = [floats(image), filters(kernel), bias];
        cases.push(one("Conv", &operands[..2], attributes.clone()));
        cases.push(one("Conv", &operands, attributes));
    }
    let computed = [floats(&[1, 4, 6, 6]), floats(&[3, 4, 3, 3]), floats(&[3])];
    cases.push(one("Conv", &computed, none()));
}

/// First convolutions: few channels, windows that move by two pixels, with and without bias and activation.
fn stems(cases: &mut Vec<Case>) {
    let two = |pads: &[i64]| attributes(1, &[2, 2], pads, &[1, 1]);
    let images: [(&[usize], &[usize], Attributes); 13] = [
        (&[2, 3, 40, 37], &[64, 3, 3, 3], attributes(1, &[1, 1], &[1, 1, 1, 1], &[1, 1])),
        (&[1, 1, 19, 21], &[24, 1, 5, 5], attributes(1, &[1, 1], &[2, 2, 2, 2], &[1, 1])),
        (&[1, 3, 40, 40], &[64, 3, 7, 7], two(&[3, 3, 3, 3])),
        (&[3, 3, 33, 37], &[64, 3, 7, 7], two(&[3, 3, 3, 3])),
        (&[1, 3, 36, 44], &[32, 3, 3, 3], two(&[1, 1, 1, 1])),
        (&[3, 3, 19, 70], &[30, 3, 3, 3], two(&[0, 0, 1, 1])),
        (&[1, 3, 23, 22], &[96, 3, 5, 5], two(&[2, 2, 2, 2])),
        (&[3, 4, 17, 18], &[8, 4, 3, 3], two(&[1, 0, 0, 1])),
        (&[1, 1, 28, 30], &[8, 1, 5, 5], two(&[2, 1, 2, 1])),
        (&[2, 2, 11, 13], &[33, 2, 3, 5], attributes(1, &[1, 1], &[1, 2, 1, 2], &[1, 1])),
        (&[1, 3, 20, 21], &[24, 3, 2, 3], attributes(1, &[3, 2], &[1, 1, 0, 0], &[1, 1])),
        // Few more channels, with windows of one pixel.
        (&[2, 24, 15, 17], &[144, 24, 1, 1], attributes(1, &[1, 1], &[0, 0, 0, 0], &[1, 1])),
        (&[1, 20, 9, 20], &[52, 20, 1, 1], attributes(1, &[2, 2], &[0, 0, 0, 0], &[1, 1])),
    ];
    for (image, kernel, attributes) in images {
        let bias = weights(&kernel[..1]);
        let operands = [floats(image), filters(kernel), bias];
        cases.push(one("Conv", &operands[..2], attributes.clone()));
        let mut stem = CaseBuilder::new(OPSET);
        let given: Vec<_> = operands.iter().map(|operand| stem.operand(operand).unwrap()).collect();
        let conv = stem.node("Conv", &given, attributes);
        let active = stem.node("Relu", &[conv], none());
        cases.push(stem.finish(&format!("a stem of {image:?} and {kernel:?}, active"), &[active]));
    }
}

/// Channels that fill whole steps of a sum, of images that are not square, with pads and strides that differ.
fn windowed(cases: &mut Vec<Case>) {
    for channels in [64, 128] {
        for (kernel, strides, pads) in
            [([3, 3], [2, 1], [1, 0, 0, 2]), ([1, 3], [1, 2], [0, 1, 1, 0])]
        {
            let operands =
                [floats(&[2, channels, 9, 14]), filters(&[72, channels, kernel[0], kernel[1]])];
            cases.push(one("Conv", &operands, attributes(1, &strides, &pads, &[1, 1])));
        }
    }
}

/// Windows that move by one pixel over images whose channels and filters fill whole tiles, with all that may follow.
fn moved_by_one(cases: &mut Vec<Case>) {
    let images = [
        ([2, 64, 56, 56], [64, 64, 3, 3], [1, 1, 1, 1], "Relu"),
        ([3, 128, 28, 31], [128, 128, 3, 3], [1, 1, 1, 1], "Relu"),
        ([3, 64, 35, 30], [192, 64, 3, 3], [0, 2, 1, 1], "HardSwish"),
        ([1, 192, 31, 23], [128, 192, 5, 3], [2, 1, 2, 1], "Sigmoid"),
        ([2, 256, 14, 14], [256, 256, 3, 3], [1, 1, 1, 1], "Relu"),
    ];
    for (image, kernel, pads, activation) in images {
        let operands = [floats(&image), filters(&kernel), weights(&kernel[..1])];
        let attributes = attributes(1, &[1, 1], &pads, &[1, 1]);
        cases.push(one("Conv", &operands[..2], attributes.clone()));
        let sizes = [0, 1].map(|axis: usize| {
            let pads = (pads[axis] + pads[2 + axis]) as usize;
            image[2 + axis] + pads + 1 - kernel[2 + axis]
        });
        let residual = floats(&[image[0], kernel[0], sizes[0], sizes[1]]);
        for has_residual in [false, true] {
            let mut block = CaseBuilder::new(OPSET);
            let given: Vec<_> =
                operands.iter().map(|operand| block.operand(operand).unwrap()).collect();
            let mut sum = block.node("Conv", &given, attributes.clone());
            if has_residual {
                let residual = block.operand(&residual).unwrap();
                sum = block.node("Add", &[sum, residual], none());
            }
            let active = block.node(activation, &[sum], none());
            let with = if has_residual { "with" } else { "without" };
            let name = format!("windows of {image:?} by {kernel:?}, {activation}, {with} residual");
            cases.push(block.finish(&name, &[active]));
        }
    }
}

/// Many more tiles than SMs, of sizes that no tile divides: products, and windows with strides, dilations and pads.
fn streamed(cases: &mut Vec<Case>) {
    type Windows = ([usize; 4], usize, [i64; 2], [i64; 4], bool);
    let windows: [Windows; 6] = [
        ([3, 72, 31, 29], 1, [1, 1], [0, 0, 0, 0], true),
        ([2, 328, 23, 29], 1, [1, 1], [0, 0, 0, 0], true),
        ([5, 128, 41, 38], 1, [2, 1], [0, 0, 0, 0], true),
        ([3, 64, 47, 50], 3, [2, 1], [1, 0, 1, 1], true),
        ([2, 72, 31, 19], 1, [1, 1], [0, 0, 0, 0], false),
        ([2, 64, 25, 23], 3, [1, 2], [2, 1, 2, 3], true),
    ];
    for (image, side, [stride, dilation], pads, has_bias) in windows {
        for (activation, has_residual) in [("Relu", true), ("HardSwish", false)] {
            let kernel = [200, image[1], side, side];
            let mut operands = vec![floats(&image), filters(&kernel)];
            operands.extend(has_bias.then(|| weights(&kernel[..1])));
            let mut block = CaseBuilder::new(OPSET);
            let given: Vec<_> =
                operands.iter().map(|operand| block.operand(operand).unwrap()).collect();
            let taken = attributes(1, &[stride, stride], &pads, &[dilation, dilation]);
            let mut sum = block.node("Conv", &given, taken);
            if has_residual {
                let size = |axis: usize| {
                    let padded = image[axis + 2] + (pads[axis] + pads[axis + 2]) as usize;
                    (padded - dilation as usize * (side - 1) - 1) / stride as usize + 1
                };
                let added = floats(&[image[0], kernel[0], size(0), size(1)]);
                let added = block.operand(&added).unwrap();
                sum = block.node("Add", &[sum, added], none());
            }
            let active = block.node(activation, &[sum], none());
            let with = if has_residual { "with" } else { "without" };
            let name = format!("streamed {image:?} by {kernel:?}, {activation}, {with} residual");
            cases.push(block.finish(&name, &[active]));
        }
    }
}

/// Few rows by many weights, of sizes that no tile divides: products, and windows that are as large as their image.
fn few_rows(cases: &mut Vec<Case>) {
    for (rows, terms, has_residual) in [(8, 1000, true), (37, 72, false), (1, 264, false)] {
        let filters = filters(&[1416, terms]);
        let mut block = CaseBuilder::new(OPSET);
        let operands = [floats(&[rows, terms]), filters, weights(&[1416])];
        let given = operands.map(|operand| block.operand(&operand).unwrap());
        let mut sum = block.node("Gemm", &given, Attributes::new().with("transB", 1i64));
        if has_residual {
            let added = block.operand(&floats(&[rows, 1416])).unwrap();
            sum = block.node("Add", &[sum, added], none());
        }
        let active = block.node("Relu", &[sum], none());
        cases.push(block.finish(&format!("few rows: {rows} by {terms} terms"), &[active]));
    }
    let (image, kernel) = ([5, 64, 3, 3], [1416, 64, 3, 3]);
    let mut block = CaseBuilder::new(OPSET);
    let given = [floats(&image), filters(&kernel)].map(|of| block.operand(&of).unwrap());
    let sum = block.node("Conv", &given, attributes(1, &[1, 1], &[0; 4], &[1, 1]));
    cases.push(block.finish(&format!("few rows: {image:?} by {kernel:?}"), &[sum]));
}

/// Convolutions of which a pool alone reads what they compute, also of images with an odd last row or column.
fn pooled(cases: &mut Vec<Case>) {
    for (image, filter_count) in [
        ([2, 64, 14, 16], 64),
        ([1, 128, 15, 13], 128),
        ([3, 64, 30, 28], 192),
        ([1, 64, 8, 224], 64),
    ] {
        let kernel = [filter_count, image[1], 3, 3];
        let operands = [floats(&image), filters(&kernel), weights(&kernel[..1])];
        let mut block = CaseBuilder::new(OPSET);
        let given: Vec<_> =
            operands.iter().map(|operand| block.operand(operand).unwrap()).collect();
        let sum = block.node("Conv", &given, attributes(1, &[1, 1], &[1, 1, 1, 1], &[1, 1]));
        let active = block.node("Relu", &[sum], none());
        let window = none().with("kernel_shape", vec![2i64, 2]).with("strides", vec![2i64, 2]);
        let greatest = block.node("MaxPool", &[active], window);
        cases.push(
            block.finish(&format!("windows of {image:?} by {kernel:?}, pooled"), &[greatest]),
        );
    }
}

fn transposed(cases: &mut Vec<Case>) {
    let cut = attributes(1, &[2, 2], &[1, 1, 1, 1], &[1, 1]).with("output_padding", vec![1i64, 1]);
    let images: [(&[usize], &[usize], Attributes); 5] = [
        (&[1, 6, 5, 4], &[6, 8, 3, 3], cut),
        (&[2, 8, 3, 3], &[8, 4, 2, 2], attributes(1, &[2, 2], &[0, 0, 0, 0], &[1, 1])),
        (&[1, 4, 3, 5], &[4, 3, 3, 2], attributes(2, &[3, 1], &[0, 1, 1, 0], &[1, 2])),
        (&[1, 4, 7], &[4, 5, 4], attributes(1, &[2], &[1, 1], &[1])),
        (&[1, 2, 3, 3, 2], &[2, 3, 2, 2, 2], attributes(1, &[2, 2, 2], &[0; 6], &[1, 1, 1])),
    ];
    for (image, kernel, attributes) in images {
        let group = attributes.int_or("group", 1).unwrap() as usize;
        let bias = weights(&[kernel[1] * group]);
        cases.push(one("ConvTranspose", &[floats(image), filters(kernel), bias], attributes));
    }
    let computed = [floats(&[1, 4, 4, 4]), floats(&[4, 2, 3, 3])];
    cases.push(one("ConvTranspose", &computed, none().with("group", 2i64)));
}

/// Blocks as networks have them, in which the convolutions absorb what follows.
fn fused(cases: &mut Vec<Case>) {
    for (channels, group, activation) in
        [(16, 1, "Relu"), (24, 24, "HardSwish"), (16, 4, "Sigmoid"), (10, 2, "LeakyRelu")]
    {
        let mut block = CaseBuilder::new(OPSET);
        let x = block.operand(&floats(&[2, channels, 7, 6])).unwrap();
        let kernel = block.operand(&filters(&[channels, channels / group, 3, 3])).unwrap();
        let bias = block.operand(&weights(&[channels])).unwrap();
        let padded = attributes(group as i64, &[1, 1], &[1, 1, 1, 1], &[1, 1]);
        let conv = block.node("Conv", &[x, kernel, bias], padded);
        let sum = block.node("Add", &[conv, x], none());
        let active = block.node(activation, &[sum], none());
        let halves = none().with("kernel_shape", vec![2i64, 2]).with("strides", vec![2i64, 2]);
        let pooled = block.node("MaxPool", &[active], halves.clone());
        let mean = block.node("AveragePool", &[active], halves);
        let joined = block.node("Concat", &[pooled, mean], none().with("axis", 1i64));
        let global = block.node("GlobalAveragePool", &[joined], none());
        let scaled = block.node("Mul", &[joined, global], none());
        let name = format!("a block of {channels} channels in {group} groups with {activation}");
        cases.push(block.finish(&name, &[scaled]));
    }
}

/// A convolution whose channels are normalised, which leaves them last.
fn normalised() -> Case {
    let mut case = CaseBuilder::new(OPSET);
    let x = case.operand(&floats(&[2, 5, 9, 8])).unwrap();
    let kernel = case.operand(&filters(&[24, 5, 3, 3])).unwrap();
    let conv = case.node("Conv", &[x, kernel], none());
    let scale = case.operand(&weights(&[24])).unwrap();
    let normal = case.node("InstanceNormalization", &[conv, scale, scale], none());
    let active = case.node("Relu", &[normal], none());
    let kernel = case.operand(&filters(&[3, 24, 1, 1])).unwrap();
    let last = case.node("Conv", &[active, kernel], none());
    case.finish("a convolution, its channels normalised", &[last])
}

fn resized(cases: &mut Vec<Case>) {
    let scaled = |image: &[usize], scales: &[f32], attributes: Attributes| {
        let scales = Operand::Constant(Tensor::vector(scales.to_vec()));
        one("Resize", &[floats(image), Operand::Absent, scales], attributes)
    };
    for mode in ["nearest", "linear", "cubic"] {
        for coordinates in ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"] {
            let attributes =
                none().with("mode", mode).with("coordinate_transformation_mode", coordinates);
            cases.push(scaled(&[2, 3, 5, 6], &[1.0, 1.0, 2.0, 2.0], attributes.clone()));
            cases.push(scaled(&[1, 2, 7, 8], &[1.0, 1.0, 0.6, 1.5], attributes));
        }
        let attributes = none().with("mode", mode).with("axes", vec![1i64, 2]);
        cases.push(scaled(&[2, 5, 6, 16], &[2.0, 3.0], attributes));
        let sizes = super::list(&[1, 2, 9, 4]);
        let operands = [floats(&[1, 2, 6, 7]), Operand::Absent, Operand::Absent, sizes];
        cases.push(one("Resize", &operands, none().with("mode", mode)));
    }
    let smooth = none().with("mode", "linear").with("antialias", 1i64);
    cases.push(scaled(&[1, 2, 8, 9], &[1.0, 1.0, 0.5, 0.4], smooth));
    cases.push(scaled(&[1, 2, 4, 4], &[1.0; 4], none()));
    let integers = super::integers(&[1, 2, 4, 5], -9, 9);
    let scales = Operand::Constant(Tensor::vector(vec![1f32, 1.0, 2.0, 1.0]));
    cases.push(one("Resize", &[integers, Operand::Absent, scales], none()));
}
