//! What is done to a product before it is stored: a residual is added, an activation applied.

use crate::activation::Activation;
use crate::error::OperatorError;
use crate::tensor::Tensor;

/// `activation(product + residual)`, where each of the two may be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Epilogue {
    /// A residual input is added.
    pub has_residual: bool,
    /// The activation.
    pub activation: Option<Activation>,
}

impl Epilogue {
    /// True where nothing is done.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The epilogue with an activation after everything, where there is room for one.
    pub fn then_activation(self, activation: Activation) -> Option<Self> {
        self.activation.is_none().then_some(Self { activation: Some(activation), ..self })
    }

    /// The epilogue with a residual added after everything, where there is room for one.
    pub fn then_residual(self) -> Option<Self> {
        self.is_empty().then_some(Self { has_residual: true, ..self })
    }

    /// Applies it to a product.
    pub(super) fn apply(
        &self,
        product: Tensor,
        residual: Option<&Tensor>,
    ) -> Result<Tensor, OperatorError> {
        let shape = product.shape().to_vec();
        let mut elements = product.into_elements::<f32>()?;
        if self.has_residual {
            let residual = residual.ok_or(OperatorError::MissingInput(3))?;
            if residual.shape() != shape {
                return Err(OperatorError::Shapes {
                    left: shape,
                    right: residual.shape().to_vec(),
                });
            }
            let residual = residual.elements::<f32>()?;
            elements.iter_mut().zip(residual).for_each(|(element, residual)| *element += residual);
        }
        if let Some(activation) = self.activation {
            elements.iter_mut().for_each(|element| *element = activation.apply(*element));
        }
        Tensor::from_vec(shape, elements)
    }
}
