//! The activation that ends a product.

use weft_ir::Activation;

use crate::kernels::activation::{ActivationParameters, activation};

/// The prelude's name of an activation, and its parameters. Those that only bound a value are one, so that products which
/// differ in it alone share their machine code.
pub(crate) fn epilogue_activation(
    after: Option<Activation>,
) -> (&'static str, ActivationParameters) {
    let (min, max) = match after {
        None => (f32::NEG_INFINITY, f32::INFINITY),
        Some(Activation::Relu) => (0.0, f32::INFINITY),
        other => return activation(other),
    };
    activation(Some(Activation::Clip { min, max }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_share_a_kernel() {
        let name = |after| epilogue_activation(after).0;
        let clip = Activation::Clip { min: 0.0, max: 6.0 };
        assert_eq!(name(None), name(Some(clip)));
        assert_eq!(name(Some(Activation::Relu)), name(Some(clip)));
        assert_eq!(epilogue_activation(Some(clip)), activation(Some(clip)));
        assert_ne!(name(Some(Activation::Gelu)), name(None));
    }
}
