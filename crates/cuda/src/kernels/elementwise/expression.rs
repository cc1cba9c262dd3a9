//! The code of one elementwise operator: what it computes of its operands, as `Operator::evaluate` defines it.

use weft_ir::operators::elementwise::{
    Binary, BinaryFunction, BitwiseNot, BoundInput, Cast, Celu, Clip, Dropout, Elu, IsInf, IsNaN,
    Not, PRelu, Selu, Shrink, Swish, ThresholdedRelu, Unary, UnaryFunction, Variadic,
    VariadicFunction, Where,
};
use weft_ir::operators::fused::ScaleShift;
use weft_ir::{Activation, Operator};

use super::number::{Number, float_literal};
use crate::kernels::activation::activation;

/// An operand: a variable or a literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    pub(crate) text: String,
    pub(crate) number: Number,
}

/// The code of an operator whose result is a `result`; `None` where there is none for such operands.
pub(crate) fn expression(
    operator: &dyn Operator,
    terms: &[Option<Term>],
    result: Number,
) -> Option<String> {
    let term = |index: usize| terms.get(index)?.as_ref();
    let x = term(0)?;
    if let Some(text) = float_function(operator, x, result) {
        return Some(text);
    }
    if let Some(Unary { function }) = operator.downcast() {
        return integer_unary(*function, x, result);
    }
    if let Some(Binary { function }) = operator.downcast() {
        return binary(*function, x, term(1)?, result);
    }
    if let Some(Variadic { function }) = operator.downcast() {
        let all: Option<Vec<&Term>> = (0..terms.len()).map(term).collect();
        return variadic(*function, &all?, result);
    }
    if let Some(clip) = operator.downcast::<Clip>() {
        return clipped(clip, x, [term(1), term(2)], result);
    }
    if operator.downcast::<Cast>().is_some() {
        return Some(format!("converted<{}>({})", result.cuda_name(), x.text));
    }
    if operator.downcast::<Where>().is_some() {
        let (yes, no) = (term(1)?, term(2)?);
        let fits = x.number == Number::Bool && yes.number == result && no.number == result;
        return fits.then(|| format!("{} ? {} : {}", x.text, yes.text, no.text));
    }
    if operator.downcast::<PRelu>().is_some() {
        let slope = term(1)?;
        let fits = x.number == result && slope.number == result && result != Number::Bool;
        return fits.then(|| {
            let scaled = arithmetic("product", "*", slope, x);
            format!("{x} < ({})0 ? {scaled} : {x}", result.cuda_name(), x = x.text)
        });
    }
    if operator.downcast::<Not>().is_some() {
        return (x.number == Number::Bool).then(|| format!("!{}", x.text));
    }
    if operator.downcast::<BitwiseNot>().is_some() {
        let is_integer = x.number.is_integer();
        return is_integer.then(|| format!("({})~{}", result.cuda_name(), x.text));
    }
    let scale_shift = operator.downcast::<ScaleShift>()?;
    let fits = terms.iter().flatten().all(|term| term.number == Number::Float);
    let text = format!("{} * {} + {}", x.text, term(1)?.text, term(2)?.text);
    fits.then(|| activated(scale_shift.activation, &text))
}

fn activated(function: Option<Activation>, text: &str) -> String {
    let (name, parameters) = activation(function);
    let parameters =
        format!("{{{}, {}}}", float_literal(parameters.first), float_literal(parameters.second));
    match function {
        None => text.into(),
        Some(_) => format!("activate<{name}>({text}, ActivationParameters{parameters})"),
    }
}

/// Functions of one float.
fn float_function(operator: &dyn Operator, x: &Term, result: Number) -> Option<String> {
    if x.number != Number::Float {
        return None;
    }
    let class = float_class(operator, &x.text).filter(|_| result == Number::Bool);
    if class.is_some() || result != Number::Float {
        return class;
    }
    if let Some(activation) = Activation::of(operator, |_| BoundInput::Computed) {
        return Some(activated(Some(activation), &x.text));
    }
    let x = &x.text;
    if let Some(Unary { function }) = operator.downcast() {
        return Some(float_unary(*function, x));
    }
    if let Some(&Elu { alpha }) = operator.downcast() {
        return Some(format!("{x} < 0.f ? {} * expm1f({x}) : {x}", float_literal(alpha)));
    }
    if let Some(&Celu { alpha }) = operator.downcast() {
        let alpha = float_literal(alpha);
        return Some(format!("{x} < 0.f ? {alpha} * expm1f({x} / {alpha}) : {x}"));
    }
    if let Some(&Selu { alpha, gamma }) = operator.downcast() {
        let (both, gamma) = (float_literal(gamma * alpha), float_literal(gamma));
        return Some(format!("{x} < 0.f ? {both} * expm1f({x}) : {gamma} * {x}"));
    }
    if let Some(&ThresholdedRelu { alpha }) = operator.downcast() {
        return Some(format!("{x} > {} ? {x} : 0.f", float_literal(alpha)));
    }
    if let Some(&Swish { alpha }) = operator.downcast() {
        return Some(format!("{x} / (1.f + expf({} * {x}))", float_literal(-alpha)));
    }
    if let Some(&Shrink { lambda, bias }) = operator.downcast() {
        let (low, high) = (float_literal(-lambda), float_literal(lambda));
        let bias = float_literal(bias);
        return Some(format!("{x} < {low} ? {x} + {bias} : ({x} > {high} ? {x} - {bias} : 0.f)"));
    }
    let dropout = operator.downcast::<Dropout>()?;
    (!dropout.may_train).then(|| x.clone())
}

fn float_class(operator: &dyn Operator, x: &str) -> Option<String> {
    if operator.downcast::<IsNaN>().is_some() {
        return Some(format!("{x} != {x}"));
    }
    let &IsInf { detect_negative, detect_positive } = operator.downcast()?;
    let equals =
        |is_asked: bool, value: f32| is_asked.then(|| format!("{x} == {}", float_literal(value)));
    let signs =
        [equals(detect_negative, f32::NEG_INFINITY), equals(detect_positive, f32::INFINITY)];
    let tests: Vec<String> = signs.into_iter().flatten().collect();
    Some(if tests.is_empty() { "false".into() } else { tests.join(" || ") })
}

fn float_unary(function: UnaryFunction, x: &str) -> String {
    let call = |name: &str| format!("{name}({x})");
    let softplus = || format!("fmaxf({x}, 0.f) + log1pf(expf(-fabsf({x})))");
    match function {
        UnaryFunction::Abs => call("fabsf"),
        UnaryFunction::Acos => call("acosf"),
        UnaryFunction::Acosh => call("acoshf"),
        UnaryFunction::Asin => call("asinf"),
        UnaryFunction::Asinh => call("asinhf"),
        UnaryFunction::Atan => call("atanf"),
        UnaryFunction::Atanh => call("atanhf"),
        UnaryFunction::Ceil => call("ceilf"),
        UnaryFunction::Cos => call("cosf"),
        UnaryFunction::Cosh => call("coshf"),
        UnaryFunction::Erf => call("erff"),
        UnaryFunction::Exp => call("expf"),
        UnaryFunction::Floor => call("floorf"),
        UnaryFunction::Log => call("logf"),
        UnaryFunction::Mish => format!("{x} * tanhf({})", softplus()),
        UnaryFunction::Neg => format!("-{x}"),
        UnaryFunction::Reciprocal => format!("1.f / {x}"),
        UnaryFunction::Round => call("rintf"),
        UnaryFunction::Sign => call("sign_of"),
        UnaryFunction::Sin => call("sinf"),
        UnaryFunction::Sinh => call("sinhf"),
        UnaryFunction::Softplus => softplus(),
        UnaryFunction::Softsign => format!("{x} / (1.f + fabsf({x}))"),
        UnaryFunction::Sqrt => call("sqrtf"),
        UnaryFunction::Tan => call("tanf"),
        UnaryFunction::HardSwish => activated(Some(Activation::HardSwish), x),
        UnaryFunction::Relu => activated(Some(Activation::Relu), x),
        UnaryFunction::Sigmoid => activated(Some(Activation::Sigmoid), x),
        UnaryFunction::Tanh => activated(Some(Activation::Tanh), x),
    }
}

fn integer_unary(function: UnaryFunction, x: &Term, result: Number) -> Option<String> {
    if !x.number.is_integer() || x.number != result {
        return None;
    }
    let (name, x) = (result.cuda_name(), &x.text);
    Some(match function {
        UnaryFunction::Abs => format!("magnitude_of({x})"),
        UnaryFunction::Neg => format!("difference(({name})0, {x})"),
        UnaryFunction::Sign => format!("sign_of({x})"),
        UnaryFunction::Relu => format!("greatest({x}, ({name})0)"),
        _ => return None,
    })
}

/// Floats use the language's operator, integers a function that wraps.
fn arithmetic(function: &str, symbol: &str, left: &Term, right: &Term) -> String {
    match left.number {
        Number::Float => format!("{} {symbol} {}", left.text, right.text),
        _ => format!("{function}({}, {})", left.text, right.text),
    }
}

fn binary(function: BinaryFunction, left: &Term, right: &Term, result: Number) -> Option<String> {
    use BinaryFunction::*;
    if function == Pow {
        return power(left, right, result);
    }
    let number = left.number;
    let (a, b) = (&left.text, &right.text);
    let is_number = number != Number::Bool;
    let fits = right.number == number
        && match function {
            Equal => result == Number::Bool,
            _ if function.is_comparison() => is_number && result == Number::Bool,
            And | Or | Xor => number == Number::Bool && result == number,
            BitwiseAnd | BitwiseOr | BitwiseXor | ShiftLeft | ShiftRight => {
                number.is_integer() && result == number
            }
            _ => is_number && result == number,
        };
    let cast = |text: String| format!("({})({text})", number.cuda_name());
    fits.then(|| match function {
        Add => arithmetic("sum", "+", left, right),
        Sub => arithmetic("difference", "-", left, right),
        Mul => arithmetic("product", "*", left, right),
        Div => arithmetic("quotient", "/", left, right),
        Mod => format!("modulo_of({a}, {b})"),
        Fmod if number == Number::Float => format!("fmodf({a}, {b})"),
        Fmod => format!("remainder_of({a}, {b})"),
        Equal => format!("{a} == {b}"),
        Greater => format!("{a} > {b}"),
        GreaterOrEqual => format!("{a} >= {b}"),
        Less => format!("{a} < {b}"),
        LessOrEqual => format!("{a} <= {b}"),
        And => format!("{a} && {b}"),
        Or => format!("{a} || {b}"),
        Xor => format!("{a} != {b}"),
        BitwiseAnd => cast(format!("{a} & {b}")),
        BitwiseOr => cast(format!("{a} | {b}")),
        BitwiseXor => cast(format!("{a} ^ {b}")),
        ShiftLeft => format!("shifted_left({a}, {b})"),
        ShiftRight => format!("shifted_right({a}, {b})"),
        Pow => unreachable!("a power has its own rules"),
    })
}

fn power(base: &Term, exponent: &Term, result: Number) -> Option<String> {
    let (a, b) = (&base.text, &exponent.text);
    match (base.number, exponent.number) {
        _ if base.number != result || exponent.number == Number::Bool => None,
        (Number::Float, Number::Float) if b == "2.0f" => Some(format!("{a} * {a}")),
        (Number::Float, _) => Some(format!("powf({a}, (float){b})")),
        (base, exponent) if base.is_integer() && exponent.is_integer() => {
            Some(format!("power_of({a}, (long long){b})"))
        }
        _ => None,
    }
}

fn variadic(function: VariadicFunction, terms: &[&Term], result: Number) -> Option<String> {
    let is_mean = function == VariadicFunction::Mean;
    let fits = result != Number::Bool
        && terms.iter().all(|term| term.number == result)
        && (!is_mean || result == Number::Float);
    let (first, rest) = terms.split_first().filter(|_| fits)?;
    let fold = |left: String, right: &&Term| match function {
        VariadicFunction::Max => format!("greatest({left}, {})", right.text),
        VariadicFunction::Min => format!("least({left}, {})", right.text),
        _ => format!("sum({left}, {})", right.text),
    };
    let folded = rest.iter().fold(first.text.clone(), fold);
    Some(match is_mean {
        true => format!("{folded} / {}", float_literal(terms.len() as f32)),
        false => folded,
    })
}

fn clipped(clip: &Clip, x: &Term, bounds: [Option<&Term>; 2], result: Number) -> Option<String> {
    if x.number == Number::Bool || x.number != result {
        return None;
    }
    let bound = |given: Option<&Term>, attribute: Option<f32>| match (given, attribute) {
        (Some(term), _) => (term.number == x.number).then(|| Some(term.text.clone())),
        (None, Some(value)) => (x.number == Number::Float).then(|| Some(float_literal(value))),
        (None, None) => Some(None),
    };
    let raised = match bound(bounds[0], clip.min)? {
        Some(low) => format!("greatest({}, {low})", x.text),
        None => x.text.clone(),
    };
    Some(match bound(bounds[1], clip.max)? {
        Some(high) => format!("least({raised}, {high})"),
        None => raised,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_ir::{Attributes, standard_operator};

    fn term(text: &str, number: Number) -> Option<Term> {
        Some(Term { text: text.into(), number })
    }

    fn code(operator: &str, numbers: &[Number], result: Number) -> Option<String> {
        let operator = standard_operator(operator, 18, &Attributes::new()).unwrap();
        let terms: Vec<Option<Term>> =
            ["a", "b", "c"].iter().zip(numbers).map(|(name, &n)| term(name, n)).collect();
        expression(&*operator, &terms, result)
    }

    #[test]
    fn operators_become_code() {
        use Number::*;
        let cases: [(&str, &[Number], Number, &str); 14] = [
            ("Add", &[Float, Float], Float, "a + b"),
            ("Add", &[I64, I64], I64, "sum(a, b)"),
            ("Div", &[I32, I32], I32, "quotient(a, b)"),
            ("Mod", &[Float, Float], Float, "modulo_of(a, b)"),
            ("Less", &[I64, I64], Bool, "a < b"),
            ("Equal", &[Bool, Bool], Bool, "a == b"),
            ("Xor", &[Bool, Bool], Bool, "a != b"),
            ("Where", &[Bool, Float, Float], Float, "a ? b : c"),
            ("Max", &[Float, Float, Float], Float, "greatest(greatest(a, b), c)"),
            ("Mean", &[Float, Float], Float, "sum(a, b) / 2.0f"),
            ("Pow", &[Float, I64], Float, "powf(a, (float)b)"),
            ("Clip", &[Float, Float], Float, "greatest(a, b)"),
            ("PRelu", &[Float, Float], Float, "a < (float)0 ? b * a : a"),
            (
                "Relu",
                &[Float],
                Float,
                "activate<ACTIVATION_RELU>(a, ActivationParameters{0.0f, 0.0f})",
            ),
        ];
        for (operator, numbers, result, text) in cases {
            assert_eq!(code(operator, numbers, result).as_deref(), Some(text), "{operator}");
        }
    }

    #[test]
    fn what_the_reference_refuses_has_no_code() {
        use Number::*;
        for (operator, numbers, result) in [
            ("Add", &[Float, I64][..], Float),
            ("Add", &[Bool, Bool], Bool),
            ("Greater", &[Bool, Bool], Bool),
            ("And", &[I32, I32], I32),
            ("BitwiseAnd", &[Float, Float], Float),
            ("Exp", &[I32], I32),
            ("Pow", &[I32, Float], I32),
            ("Where", &[Float, Float, Float], Float),
            ("Not", &[I64], I64),
            ("IsNaN", &[I64], Bool),
        ] {
            assert_eq!(code(operator, numbers, result), None, "{operator} {numbers:?}");
        }
    }

    #[test]
    fn a_square_is_a_product() {
        let operator = standard_operator("Pow", 18, &Attributes::new()).unwrap();
        let terms = [term("a", Number::Float), term("2.0f", Number::Float)];
        assert_eq!(expression(&*operator, &terms, Number::Float).unwrap(), "a * a");
    }
}
