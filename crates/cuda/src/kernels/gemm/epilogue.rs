//! The activation that ends a product.

use weft_ir::Activation;

use crate::kernels::activation::{ActivationParameters, activation};

/// The prelude's name of an activation, and its parameters. None, and the one that only bounds from below, are the same one,
/// so that products which differ in it alone share their machine code.
pub(crate) fn epilogue_activation(
    after: Option<Activation>,
) -> (&'static str, ActivationParameters) {
    let least = match after {
        None => f32::NEG_INFINITY,
        Some(Activation::Relu) => 0.0,
        other => return activation(other),
    };
    ("ACTIVATION_AT_LEAST", ActivationParameters { first: least, second: 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_from_below_share_a_kernel() {
        let name = |after| epilogue_activation(after).0;
        assert_eq!(name(None), name(Some(Activation::Relu)));
        assert_ne!(epilogue_activation(None), epilogue_activation(Some(Activation::Relu)));
        let clip = Activation::Clip { min: 0.0, max: 6.0 };
        assert_eq!(epilogue_activation(Some(clip)), activation(Some(clip)));
    }
}
