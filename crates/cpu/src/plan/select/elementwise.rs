//! Functions of one or two elements, and of channels.

use weft_ir::operators::elementwise::{
    Binary, BinaryFunction as Function, Unary, UnaryFunction, Variadic, VariadicFunction,
};
use weft_ir::operators::fused::ScaleShift;

use super::bound::bound;
use crate::Activation;
use crate::kernels::{self, BinaryFunction, BinaryKernel, UnaryKernel};
use crate::plan::site::{Selected, Site};

pub(super) fn select(site: &Site<'_>) -> Option<Selected> {
    unary(site).or_else(|| binary(site)).or_else(|| scale_shift(site))
}

fn unary(site: &Site<'_>) -> Option<Selected> {
    let kernel = match site.activation() {
        Some(activation) => UnaryKernel::Activation(Some(activation).into()),
        None => match site.operator::<Unary>()?.function {
            UnaryFunction::Abs => UnaryKernel::Abs,
            UnaryFunction::Ceil => UnaryKernel::Ceil,
            UnaryFunction::Erf => UnaryKernel::Erf,
            UnaryFunction::Exp => UnaryKernel::Exp,
            UnaryFunction::Floor => UnaryKernel::Floor,
            UnaryFunction::Log => UnaryKernel::Log,
            UnaryFunction::Mish => UnaryKernel::Mish,
            UnaryFunction::Neg => UnaryKernel::Neg,
            UnaryFunction::Reciprocal => UnaryKernel::Reciprocal,
            UnaryFunction::Round => UnaryKernel::Round,
            UnaryFunction::Softplus => UnaryKernel::Softplus,
            UnaryFunction::Softsign => UnaryKernel::Softsign,
            UnaryFunction::Sqrt => UnaryKernel::Sqrt,
            _ => return None,
        },
    };
    let is_dense = site.dense_input(0)? == site.dense_output()?;
    is_dense.then(|| {
        // SAFETY: as `bound` says.
        bound("unary", vec![0], move |worker, call| unsafe {
            kernel.run(worker, call.input(0), call.output())
        })
    })?
}

fn binary(site: &Site<'_>) -> Option<Selected> {
    let function = match (site.operator::<Binary>(), site.operator::<Variadic>()) {
        (Some(binary), _) => match binary.function {
            Function::Add => BinaryFunction::Add,
            Function::Sub => BinaryFunction::Sub,
            Function::Mul => BinaryFunction::Mul,
            Function::Div => BinaryFunction::Div,
            Function::Pow => BinaryFunction::Pow,
            _ => return None,
        },
        (_, Some(variadic)) if site.node.inputs.len() == 2 => match variadic.function {
            VariadicFunction::Sum => BinaryFunction::Add,
            VariadicFunction::Max => BinaryFunction::Max,
            VariadicFunction::Min => BinaryFunction::Min,
            VariadicFunction::Mean => return None,
        },
        _ => return None,
    };
    let (left, right) = (site.dense_input(0)?, site.dense_input(1)?);
    let kernel = BinaryKernel::new(function, &left, &right, Activation::None).ok()?;
    let fits = kernel.output_shape() == site.dense_output()?;
    fits.then(|| {
        // SAFETY: as `bound` says.
        bound("binary", vec![0, 1], move |worker, call| unsafe {
            kernel.run(worker, call.input(0), call.input(1), call.output())
        })
    })?
}

fn scale_shift(site: &Site<'_>) -> Option<Selected> {
    let operator = site.operator::<ScaleShift>()?;
    let shape = site.dense_input(0)?;
    let (scale, shift) = (site.constant_f32s(1)?, site.constant_f32s(2)?);
    let is_last = operator.channel_axis + 1 == shape.len();
    let fits = is_last
        && !scale.is_empty()
        && shape.last() == Some(&scale.len())
        && site.dense_output()? == shape;
    let kernel =
        fits.then(|| kernels::ScaleShift::new(scale, shift, operator.activation.into()))?;
    // SAFETY: as `bound` says.
    bound("scale_shift", vec![0], move |worker, call| unsafe {
        kernel.run(worker, call.input(0), call.output())
    })
}
