//! What is done to a product before it is stored: a residual is added, an activation applied.

use crate::activation::Activation;
use crate::error::OperatorError;
use crate::tensor::Tensor;

/// Where a residual input is added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Residual {
    /// There is none.
    #[default]
    None,
    /// Before the activation, as in ResNet.
    BeforeActivation,
    /// After the activation.
    AfterActivation,
}

/// A residual and an activation, each of which may be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Epilogue {
    /// Where the residual input is added.
    pub residual: Residual,
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
        let is_free = self.activation.is_none() && self.residual != Residual::AfterActivation;
        is_free.then_some(Self { activation: Some(activation), ..self })
    }

    /// The epilogue with a residual added after everything, where there is room for one.
    pub fn then_residual(self) -> Option<Self> {
        let residual = match self.activation {
            None => Residual::BeforeActivation,
            Some(_) => Residual::AfterActivation,
        };
        (self.residual == Residual::None).then_some(Self { residual, ..self })
    }

    /// Applies it to a product.
    pub(super) fn apply(
        &self,
        product: Tensor,
        residual: Option<&Tensor>,
    ) -> Result<Tensor, OperatorError> {
        let shape = product.shape().to_vec();
        let mut elements = product.into_elements::<f32>()?;
        let add = |elements: &mut [f32]| -> Result<(), OperatorError> {
            let residual = residual.ok_or(OperatorError::MissingInput(3))?;
            if residual.shape() != shape {
                return Err(OperatorError::Shapes {
                    left: shape.clone(),
                    right: residual.shape().to_vec(),
                });
            }
            let residual = residual.elements::<f32>()?;
            elements.iter_mut().zip(residual).for_each(|(element, residual)| *element += residual);
            Ok(())
        };
        if self.residual == Residual::BeforeActivation {
            add(&mut elements)?;
        }
        if let Some(activation) = self.activation {
            elements.iter_mut().for_each(|element| *element = activation.apply(*element));
        }
        if self.residual == Residual::AfterActivation {
            add(&mut elements)?;
        }
        Tensor::from_vec(shape, elements)
    }
}
