//! Layers of one shape that many tenants have, each with weights of its own.

use weft_ir::{Attributes, Tensor};

use super::{Case, CaseBuilder, OPSET, Operand, none, numbers};

/// A convolution with a bias, and what follows it.
pub(crate) struct Layer {
    pub(crate) name: &'static str,
    /// Channels, rows and columns of one image.
    pub(crate) image: [usize; 3],
    pub(crate) filters: usize,
    /// Rows and columns of a window, which moves by one pixel.
    pub(crate) window: [usize; 2],
    pub(crate) has_residual: bool,
    pub(crate) activation: &'static str,
}

/// Of sizes that no tile divides.
pub(crate) const MANY_PIXELS: [Layer; 2] = [
    Layer {
        name: "windows",
        image: [64, 29, 27],
        filters: 136,
        window: [2, 2],
        has_residual: true,
        activation: "Relu",
    },
    Layer {
        name: "a product",
        image: [72, 29, 27],
        filters: 136,
        window: [1, 1],
        has_residual: false,
        activation: "HardSwish",
    },
];

/// Fewer pixels than a tile has rows, and many filters.
pub(crate) const FEW_PIXELS: [Layer; 2] = [
    Layer {
        name: "few windows",
        image: [64, 7, 7],
        filters: 1416,
        window: [2, 2],
        has_residual: true,
        activation: "Relu",
    },
    Layer {
        name: "a product of few rows",
        image: [264, 7, 7],
        filters: 1416,
        window: [1, 1],
        has_residual: false,
        activation: "HardSwish",
    },
];

impl Layer {
    /// The layer of one tenant.
    pub(crate) fn of_tenant(&self, tenant: u64) -> Case {
        let [channels, rows, columns] = self.image;
        let kernel = [self.filters, channels, self.window[0], self.window[1]];
        // Sums stay within what 16 bits hold.
        let scale = 1.0 / 16.0;
        let mut layer = CaseBuilder::new(OPSET);
        let mut operands = vec![Operand::Given(drawn(&[1, channels, rows, columns], 0, 1.0))];
        operands.push(Operand::Constant(drawn(&kernel, 100 + tenant, scale)));
        operands.push(Operand::Constant(drawn(&kernel[..1], 200 + tenant, 1.0)));
        let given: Vec<_> =
            operands.iter().map(|operand| layer.operand(operand).expect("it is there")).collect();
        // Results have the size of the image.
        let [above, left] = [self.window[0] - 1, self.window[1] - 1].map(|size| size as i64);
        let moved: Attributes = none().with("pads", vec![above, left, 0, 0]);
        let mut sum = layer.node("Conv", &given, moved);
        if self.has_residual {
            let added = Operand::Given(drawn(&[1, self.filters, rows, columns], 1, 1.0));
            let added = layer.operand(&added).expect("it is there");
            sum = layer.node("Add", &[sum, added], none());
        }
        let active = layer.node(self.activation, &[sum], none());
        layer.finish(self.name, &[active])
    }

    /// What a tenant is asked, each time something else.
    pub(crate) fn request(&self, seed: u64) -> Vec<Tensor> {
        let [channels, rows, columns] = self.image;
        let image = drawn(&[1, channels, rows, columns], 300 + seed, 1.0);
        let added =
            self.has_residual.then(|| drawn(&[1, self.filters, rows, columns], 400 + seed, 1.0));
        [image].into_iter().chain(added).collect()
    }
}

fn drawn(shape: &[usize], seed: u64, scale: f32) -> Tensor {
    let count = shape.iter().product();
    let elements = numbers(count, seed + 1).map(|x| x * scale).collect();
    Tensor::from_vec(shape.to_vec(), elements).expect("there are as many as the shape says")
}
