//! Elementwise operators, alone and in chains, with every kind of broadcasting.

use weft_ir::Tensor;

use super::{
    Case, CaseBuilder, OPSET, Operand, bools, floats, integers, integers_32, none, one, positive,
    scalar, weights,
};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    unary(&mut cases);
    binary(&mut cases);
    integer(&mut cases);
    logic(&mut cases);
    chains(&mut cases);
    cases
}

fn unary(cases: &mut Vec<Case>) {
    for operator in [
        "Abs",
        "Asinh",
        "Atan",
        "Ceil",
        "Cos",
        "Cosh",
        "Erf",
        "Exp",
        "Floor",
        "HardSwish",
        "Mish",
        "Neg",
        "Relu",
        "Round",
        "Sigmoid",
        "Sign",
        "Sin",
        "Sinh",
        "Softplus",
        "Softsign",
        "Tan",
        "Tanh",
        "Celu",
        "Elu",
        "Gelu",
        "HardSigmoid",
        "LeakyRelu",
        "Selu",
        "Shrink",
        "IsNaN",
        "IsInf",
        "ThresholdedRelu",
    ] {
        cases.push(one(operator, &[floats(&[3, 37])], none()));
    }
    for operator in ["Log", "Sqrt", "Reciprocal"] {
        cases.push(one(operator, &[positive(&[5, 13])], none()));
    }
    let tame = Tensor::from_vec(vec![5], vec![-0.9f32, -0.25, 0.0, 0.5, 0.75]).unwrap();
    for operator in ["Acos", "Asin", "Atanh"] {
        cases.push(one(operator, &[Operand::Given(tame.clone())], none()));
    }
    cases.push(one("Gelu", &[floats(&[257])], none().with("approximate", "tanh")));
    cases.push(one("Clip", &[floats(&[3, 9]), scalar(-0.5), scalar(1.0)], none()));
    cases.push(one("Clip", &[floats(&[3, 9]), Operand::Absent, floats(&[])], none()));
    cases.push(one("PRelu", &[floats(&[2, 3, 8]), weights(&[8])], none()));
    for to in [6i64, 7, 9, 2, 3, 10] {
        cases.push(one("Cast", &[floats(&[4, 9])], none().with("to", to)));
    }
    // What is no number, or none that the type has.
    let odd = Tensor::from_vec(vec![5], vec![f32::NAN, 300.0, -2.5, -0.0, 1.0]).unwrap();
    for to in [6i64, 7, 9, 2, 3] {
        cases.push(one("Cast", &[Operand::Given(odd.clone())], none().with("to", to)));
    }
    for to in [1i64, 6, 9] {
        cases.push(one("Cast", &[integers(&[4, 9], -300, 300)], none().with("to", to)));
    }
}

fn binary(cases: &mut Vec<Case>) {
    let shapes: [[&[usize]; 2]; 8] = [
        [&[4, 33], &[4, 33]],
        [&[2, 7, 7, 64], &[64]],
        [&[2, 7, 7, 64], &[2, 1, 1, 64]],
        [&[2, 5, 24], &[2, 5, 1]],
        [&[3, 1], &[1, 5]],
        [&[6, 7], &[]],
        [&[1, 1], &[1]],
        [&[2, 1, 4, 1], &[3, 1, 8]],
    ];
    for [left, right] in shapes {
        cases.push(one("Mul", &[floats(left), floats(right)], none()));
        cases.push(one("Less", &[floats(left), floats(right)], none()));
    }
    for operator in ["Add", "Sub", "Equal", "Greater", "GreaterOrEqual", "LessOrEqual"] {
        cases.push(one(operator, &[floats(&[5, 16]), floats(&[16])], none()));
    }
    for operator in ["Div", "Pow"] {
        cases.push(one(operator, &[positive(&[5, 16]), positive(&[5, 1])], none()));
    }
    cases.push(one("Pow", &[floats(&[5, 16]), scalar(2.0)], none()));
    cases.push(one("Mod", &[floats(&[5, 16]), positive(&[16])], none().with("fmod", 1i64)));
    for operator in ["Max", "Min", "Sum", "Mean"] {
        cases.push(one(operator, &[floats(&[5, 8]), floats(&[8]), floats(&[5, 1])], none()));
        cases.push(one(operator, &[floats(&[7])], none()));
    }
}

fn integer(cases: &mut Vec<Case>) {
    for operator in ["Add", "Sub", "Mul", "Div", "Mod", "Equal", "Less", "BitwiseAnd", "BitwiseXor"]
    {
        cases.push(one(operator, &[integers(&[4, 9], -9, 9), integers(&[9], -3, 3)], none()));
        cases.push(one(
            operator,
            &[integers_32(&[4, 9], -9, 9), integers_32(&[4, 1], -3, 3)],
            none(),
        ));
    }
    let extremes = |values: &[i64]| Operand::Given(Tensor::vector(values.to_vec()));
    let (left, right) = ([i64::MIN, i64::MAX, 7, -7, 5], [-1, 2, 0, 2, -2]);
    for operator in ["Add", "Mul", "Div", "Mod", "Pow"] {
        cases.push(one(operator, &[extremes(&left), extremes(&right)], none()));
    }
    for operator in ["Abs", "Neg", "Sign", "Relu", "BitwiseNot"] {
        cases.push(one(operator, &[integers(&[21], -9, 9)], none()));
    }
    cases.push(one("Max", &[integers(&[4, 9], -9, 9), integers(&[9], -9, 9)], none()));
    cases.push(one(
        "Clip",
        &[integers(&[21], -9, 9), Operand::Constant(Tensor::scalar(-2i64)), Operand::Absent],
        none(),
    ));
}

fn logic(cases: &mut Vec<Case>) {
    for operator in ["And", "Or", "Xor", "Equal"] {
        cases.push(one(operator, &[bools(&[3, 11]), bools(&[11])], none()));
    }
    cases.push(one("Not", &[bools(&[19])], none()));
    cases.push(one("Where", &[bools(&[3, 1]), floats(&[3, 8]), floats(&[8])], none()));
    cases.push(one(
        "Where",
        &[bools(&[16]), integers(&[2, 16], 0, 9), integers(&[], 0, 9)],
        none(),
    ));
    cases.push(one("Where", &[bools(&[4, 6]), scalar(-1e30), floats(&[4, 6])], none()));
}

fn chains(cases: &mut Vec<Case>) {
    let mut gate = CaseBuilder::new(OPSET);
    let x = gate.operand(&floats(&[2, 24, 5, 5])).unwrap();
    let pooled = gate.node("GlobalAveragePool", &[x], none());
    let squeezed = gate.node("HardSigmoid", &[pooled], none());
    let scaled = gate.node("Mul", &[x, squeezed], none());
    cases.push(gate.finish("a gate per channel", &[scaled]));

    let mut forked = CaseBuilder::new(OPSET);
    let x = forked.operand(&floats(&[6, 40])).unwrap();
    let row = forked.operand(&weights(&[40])).unwrap();
    let shifted = forked.node("Add", &[x, row], none());
    let exp = forked.node("Exp", &[shifted], none());
    let sine = forked.node("Sin", &[shifted], none());
    let joined = forked.node("Mul", &[exp, sine], none());
    let is_large = forked.node("Greater", &[joined, x], none());
    let picked = forked.node("Where", &[is_large, joined, x], none());
    cases.push(forked.finish("a chain that forks and joins", &[picked, shifted]));

    let mut mask = CaseBuilder::new(OPSET);
    let tokens = mask.operand(&integers(&[2, 9], 0, 2)).unwrap();
    let as_float = mask.node("Cast", &[tokens], none().with("to", 1i64));
    let one_value = mask.operand(&scalar(1.0)).unwrap();
    let inverted = mask.node("Sub", &[one_value, as_float], none());
    let lowest = mask.operand(&scalar(-3.4028235e38)).unwrap();
    let masked = mask.node("Mul", &[inverted, lowest], none());
    let scores = mask.operand(&floats(&[2, 9])).unwrap();
    let summed = mask.node("Add", &[scores, masked], none());
    let softmax = mask.node("Softmax", &[summed], none());
    cases.push(mask.finish("a mask before a softmax", &[softmax]));

    let mut norm = CaseBuilder::new(OPSET);
    let x = norm.operand(&floats(&[2, 6, 5, 4])).unwrap();
    let max = norm.node("MaxPool", &[x], none().with("kernel_shape", vec![2i64, 2]));
    let parameters = [floats(&[6]), floats(&[6]), floats(&[6]), positive(&[6])].map(|operand| {
        let Operand::Given(tensor) = operand else { unreachable!() };
        norm.operand(&Operand::Constant(tensor)).unwrap()
    });
    let inputs = [&[max][..], &parameters].concat();
    let scaled = norm.node("BatchNormalization", &inputs, none());
    let active = norm.node("Relu", &[scaled], none());
    cases.push(norm.finish("a normalisation that nothing absorbs", &[active]));
}
