//! Chains of elementwise operators as one generated kernel: inputs are broadcast to the shape of the result, and what
//! is computed between stays in registers.

mod expression;
mod number;

use std::fmt::Write;

use bytemuck::{bytes_of, cast_slice};

pub(crate) use expression::{Term, expression};
pub(crate) use number::Number;

use super::divider::Divider;
use super::flat::flat_launch;
use super::widening::{WIDEST_BYTES, widening};
use crate::Storage;
use crate::launch::{Argument, KernelSource, Launch};

const TEXT: &str = concat!(
    include_str!("../../../kernels/conversion.cuh"),
    include_str!("../../../kernels/divider.cuh"),
    include_str!("../../../kernels/arithmetic.cuh"),
    include_str!("../../../kernels/elementwise.cu")
);

/// One input of a chain.
#[derive(Clone, Debug)]
pub(crate) struct ChainInput {
    pub(crate) storage: Storage,
    /// It broadcasts to the output's shape.
    pub(crate) shape: Vec<usize>,
    pub(crate) argument: Argument,
}

/// What a chain computes: the body of a function of its inputs `a0`, `a1`, ..., each a number.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub(crate) inputs: Vec<ChainInput>,
    /// Each defines one variable.
    pub(crate) statements: Vec<String>,
    /// The variable that is the result.
    pub(crate) result: String,
    pub(crate) output: Storage,
    pub(crate) shape: Vec<usize>,
}

/// The output's axes, merged where every input allows it, the innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Axes {
    sizes: Vec<usize>,
    /// For each input, from one element to the next along each axis.
    strides: Vec<Vec<usize>>,
}

impl Axes {
    fn of(shape: &[usize], inputs: &[ChainInput]) -> Self {
        let strides: Vec<Vec<usize>> =
            inputs.iter().map(|input| broadcast_strides(&input.shape, shape)).collect();
        let mut merged = Self { sizes: Vec::new(), strides: vec![Vec::new(); inputs.len()] };
        for axis in (0..shape.len()).rev().filter(|&axis| shape[axis] != 1) {
            let runs_on = |(own, inside): (&Vec<usize>, &Vec<usize>)| {
                let (size, stride) = (merged.sizes.last(), inside.last());
                size.zip(stride).is_some_and(|(size, stride)| own[axis] == size * stride)
            };
            if !merged.sizes.is_empty() && strides.iter().zip(&merged.strides).all(runs_on) {
                *merged.sizes.last_mut().expect("just checked") *= shape[axis];
                continue;
            }
            merged.sizes.push(shape[axis]);
            merged.strides.iter_mut().zip(&strides).for_each(|(to, own)| to.push(own[axis]));
        }
        if merged.sizes.is_empty() {
            merged.sizes.push(1);
            merged.strides.iter_mut().for_each(|strides| strides.push(0));
        }
        merged
    }

    fn moves(&self, input: usize) -> bool {
        self.strides[input][0] != 0
    }

    /// The neighbours that one thread computes.
    fn width(&self, chain: &Chain) -> usize {
        let moving =
            |(index, input): (usize, &ChainInput)| self.moves(index).then_some(input.storage);
        let storages = chain.inputs.iter().enumerate().filter_map(moving).chain([chain.output]);
        let largest = storages.map(Storage::size_bytes).max().unwrap_or(WIDEST_BYTES);
        let most = WIDEST_BYTES / largest;
        match self.sizes[..] {
            // The end of a single axis is computed element by element.
            [_] => most,
            [inner, ..] => most.min(widening(Storage::U8, [inner])),
            [] => 1,
        }
    }
}

/// The distances between neighbours of a tensor along the axes of a shape that it broadcasts to.
fn broadcast_strides(from: &[usize], to: &[usize]) -> Vec<usize> {
    if from.iter().product::<usize>() == 1 {
        return vec![0; to.len()];
    }
    let missing = to.len() - from.len();
    let own = weft_ir::strides(from);
    let stride = |axis: usize| match axis.checked_sub(missing) {
        Some(axis) if from[axis] != 1 => own[axis],
        _ => 0,
    };
    (0..to.len()).map(stride).collect()
}

impl Chain {
    /// The launch; `None` where there is nothing to compute.
    pub(crate) fn launch(&self) -> Option<Launch> {
        let count: usize = self.shape.iter().product();
        if count == 0 {
            return None;
        }
        let axes = Axes::of(&self.shape, &self.inputs);
        let width = axes.width(self);
        let mut shape = Vec::new();
        for &size in &axes.sizes {
            shape.extend_from_slice(bytes_of(&Divider::new(size)));
        }
        for strides in &axes.strides {
            let strides: Vec<u32> = strides.iter().map(|&stride| stride as u32).collect();
            shape.extend_from_slice(cast_slice(&strides));
        }
        let mut arguments = vec![Argument::Output(0), Argument::Bytes(shape), Argument::u32(count)];
        arguments.extend(self.inputs.iter().map(|input| input.argument.clone()));
        Some(flat_launch(self.source(&axes, width), count.div_ceil(width), arguments))
    }

    fn source(&self, axes: &Axes, width: usize) -> KernelSource {
        let defines = vec![
            ("INPUTS", self.inputs.len().to_string()),
            ("RANK", axes.sizes.len().to_string()),
            ("OUTPUT", self.output.cuda_name().to_string()),
            ("WIDTH", width.to_string()),
        ];
        let generated = self.generated(axes);
        KernelSource {
            generated,
            ..KernelSource::new("elementwise.cu", TEXT, "elementwise", defines)
        }
    }

    /// The code that the template asks for.
    fn generated(&self, axes: &Axes) -> String {
        let list = |item: &dyn Fn(usize, &ChainInput) -> String, separator: &str| {
            let items = self.inputs.iter().enumerate().map(|(index, input)| item(index, input));
            items.collect::<Vec<_>>().join(separator)
        };
        let pointer =
            |index, input: &ChainInput| format!("const {} *p{index}", input.storage.cuda_name());
        let read = |index: usize, _: &ChainInput| match axes.moves(index) {
            true => format!("auto x{index} = moving<COUNT>(p{index} + places[{index}]);"),
            false => format!("auto x{index} = staying(p{index} + places[{index}]);"),
        };
        let value = |index: usize, _: &ChainInput| format!("at(x{index}, i)");
        let number = |index: usize, input: &ChainInput| {
            format!("{} a{index}", Number::of(input.storage).cuda_name())
        };
        let moves = |index: usize, _: &ChainInput| u8::from(axes.moves(index)).to_string();
        let pointer_name = |index: usize, _: &ChainInput| format!("p{index}");
        let mut text = String::new();
        let _ = writeln!(text, "#define PARAMETERS {}", list(&pointer, ", "));
        let _ = writeln!(text, "#define ARGUMENTS {}", list(&pointer_name, ", "));
        let _ = writeln!(text, "#define MOVES {}", list(&moves, ", "));
        let _ = writeln!(text, "#define READ(COUNT) {}", list(&read, " "));
        let _ = writeln!(text, "#define EVALUATE(i) evaluate({})", list(&value, ", "));
        let _ = writeln!(text, "#define NUMBERS {}", list(&number, ", "));
        let _ = writeln!(text, "#define RESULT {}", Number::of(self.output).cuda_name());
        let _ = write!(text, "#define STATEMENTS");
        for statement in &self.statements {
            let _ = write!(text, " \\\n    {statement}");
        }
        let _ = writeln!(text, " \\\n    return {};", self.result);
        text
    }
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    let input = |storage, shape: &[usize]| ChainInput {
        storage,
        shape: shape.to_vec(),
        argument: Argument::Null,
    };
    let chain = |inputs, statements: &[&str], output| Chain {
        inputs,
        statements: statements.iter().map(|statement| statement.to_string()).collect(),
        result: "b0".into(),
        output,
        shape: vec![2, 7, 7, 64],
    };
    let (gate, channels) = (&[2, 1, 1, 64][..], &[64][..]);
    let chains = [
        chain(
            vec![input(Storage::F16, &[2, 7, 7, 64]), input(Storage::F16, gate)],
            &["float b0 = a0 * activate<ACTIVATION_SIGMOID>(a1, ActivationParameters{0.f, 0.f});"],
            Storage::F16,
        ),
        chain(
            vec![input(Storage::F32, &[2, 7, 7, 1]), input(Storage::Bf16, channels)],
            &["float b0 = modulo_of(least(a0, sign_of(a1)), greatest(a0, powf(a0, a1)));"],
            Storage::F32,
        ),
        chain(
            vec![input(Storage::I64, &[2, 7, 7, 64]), input(Storage::I64, &[])],
            &["bool b0 = quotient(a0, a1) < power_of(modulo_of(a0, a1), a1);"],
            Storage::Bool,
        ),
        chain(
            vec![input(Storage::I8, channels), input(Storage::I8, &[2, 1, 1, 1])],
            &["signed char b0 = shifted_left(sum(a0, a1), shifted_right(a0, magnitude_of(a1)));"],
            Storage::I8,
        ),
        chain(
            vec![input(Storage::Bool, channels), input(Storage::U8, &[2, 7, 7, 64])],
            &[
                "int b0 = a0 ? converted<int>(product(a1, a1)) : converted<int>(remainder_of(a1, a1));",
            ],
            Storage::I32,
        ),
    ];
    chains.iter().filter_map(Chain::launch).map(|launch| launch.source).collect()
}

#[cfg(test)]
mod tests;
