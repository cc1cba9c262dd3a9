//! Inception V3, without the auxiliary head that only training uses.

use crate::entry::{Entry, Takes};
use crate::layers::{Convolution, Window};
use crate::models::{CLASSES, TINY_CLASSES};
use crate::network::{Network, Signal, batch, fixed};

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "inception_v3",
        family: "inception",
        takes: Takes::Images { side: 299, smallest: Some(75) },
        parameters: 23_834_568,
        assemble: |network| assemble(network, &INCEPTION_V3),
    },
    Entry {
        name: "tiny_inception",
        family: "inception",
        takes: Takes::Images { side: 107, smallest: Some(75) },
        parameters: 39_296,
        assemble: |network| assemble(network, &TINY),
    },
];

/// The modules that keep the image's size, with the one number in which modules of a kind differ.
enum Module {
    /// 5x5 and double 3x3 branches; channels of the pool branch.
    Small(&'static str, usize),
    /// 7x7 branches as pairs of 1x7 and 7x1; their inner channels.
    Factored(&'static str, usize),
    /// 3x3 branches that end in 1x3 beside 3x1.
    Wide(&'static str),
    /// Halves the image after small modules.
    HalveSmall(&'static str),
    /// Halves the image after factored modules.
    HalveFactored(&'static str),
}

use Module::{Factored, HalveFactored, HalveSmall, Small, Wide};

struct Size {
    /// Every channel count is divided by this.
    divisor: usize,
    modules: &'static [Module],
    classes: usize,
}

const INCEPTION_V3: Size = Size {
    divisor: 1,
    modules: &[
        Small("Mixed_5b", 32),
        Small("Mixed_5c", 64),
        Small("Mixed_5d", 64),
        HalveSmall("Mixed_6a"),
        Factored("Mixed_6b", 128),
        Factored("Mixed_6c", 160),
        Factored("Mixed_6d", 160),
        Factored("Mixed_6e", 192),
        HalveFactored("Mixed_7a"),
        Wide("Mixed_7b"),
        Wide("Mixed_7c"),
    ],
    classes: CLASSES,
};
const TINY: Size = Size {
    divisor: 16,
    modules: &[
        Small("Mixed_5b", 32),
        HalveSmall("Mixed_6a"),
        Factored("Mixed_6b", 128),
        HalveFactored("Mixed_7a"),
        Wide("Mixed_7b"),
    ],
    classes: TINY_CLASSES,
};

const EPSILON: f32 = 1e-3;

/// One module under construction: where its layers are named and how its channels are scaled.
struct Scope<'a> {
    network: &'a mut Network,
    name: &'a str,
    divisor: usize,
}

impl Scope<'_> {
    /// Convolution, normalisation and ReLU.
    fn active(&mut self, name: &str, x: Signal, channels: usize, layer: Layer) -> Signal {
        let channels = channels / self.divisor;
        let convolution = match layer {
            Layer::Same(kernel) => Convolution::new(channels, kernel),
            Layer::Wide(width) => Convolution::rectangular(channels, [1, width]),
            Layer::High(height) => Convolution::rectangular(channels, [height, 1]),
            Layer::Inside(stride) => Convolution::new(channels, 3).stride(stride).padding(0),
        };
        let name = if self.name.is_empty() { name.into() } else { format!("{}.{name}", self.name) };
        let x = self.network.convolve(&format!("{name}.conv"), x, convolution);
        let x = self.network.batch_norm(&format!("{name}.bn"), x, EPSILON, 1.0);
        self.network.relu(x)
    }

    fn pooled(&mut self, x: Signal, channels: usize) -> Signal {
        let pooled = self.network.average_pool(x, Window::new(3, 1).padding(1));
        self.active("branch_pool", pooled, channels, Layer::Same(1))
    }

    fn small(&mut self, x: Signal, pool_channels: usize) -> Signal {
        let one = self.active("branch1x1", x, 64, Layer::Same(1));
        let five = self.active("branch5x5_1", x, 48, Layer::Same(1));
        let five = self.active("branch5x5_2", five, 64, Layer::Same(5));
        let three = self.active("branch3x3dbl_1", x, 64, Layer::Same(1));
        let three = self.active("branch3x3dbl_2", three, 96, Layer::Same(3));
        let three = self.active("branch3x3dbl_3", three, 96, Layer::Same(3));
        let pool = self.pooled(x, pool_channels);
        self.network.concat(&[one, five, three, pool])
    }

    fn halve_small(&mut self, x: Signal) -> Signal {
        let three = self.active("branch3x3", x, 384, Layer::Inside(2));
        let double = self.active("branch3x3dbl_1", x, 64, Layer::Same(1));
        let double = self.active("branch3x3dbl_2", double, 96, Layer::Same(3));
        let double = self.active("branch3x3dbl_3", double, 96, Layer::Inside(2));
        let pool = self.network.max_pool(x, Window::new(3, 2));
        self.network.concat(&[three, double, pool])
    }

    fn factored(&mut self, x: Signal, inner: usize) -> Signal {
        let one = self.active("branch1x1", x, 192, Layer::Same(1));
        let seven = self.active("branch7x7_1", x, inner, Layer::Same(1));
        let seven = self.active("branch7x7_2", seven, inner, Layer::Wide(7));
        let seven = self.active("branch7x7_3", seven, 192, Layer::High(7));
        let double = self.active("branch7x7dbl_1", x, inner, Layer::Same(1));
        let double = self.active("branch7x7dbl_2", double, inner, Layer::High(7));
        let double = self.active("branch7x7dbl_3", double, inner, Layer::Wide(7));
        let double = self.active("branch7x7dbl_4", double, inner, Layer::High(7));
        let double = self.active("branch7x7dbl_5", double, 192, Layer::Wide(7));
        let pool = self.pooled(x, 192);
        self.network.concat(&[one, seven, double, pool])
    }

    fn halve_factored(&mut self, x: Signal) -> Signal {
        let three = self.active("branch3x3_1", x, 192, Layer::Same(1));
        let three = self.active("branch3x3_2", three, 320, Layer::Inside(2));
        let seven = self.active("branch7x7x3_1", x, 192, Layer::Same(1));
        let seven = self.active("branch7x7x3_2", seven, 192, Layer::Wide(7));
        let seven = self.active("branch7x7x3_3", seven, 192, Layer::High(7));
        let seven = self.active("branch7x7x3_4", seven, 192, Layer::Inside(2));
        let pool = self.network.max_pool(x, Window::new(3, 2));
        self.network.concat(&[three, seven, pool])
    }

    fn wide(&mut self, x: Signal) -> Signal {
        let one = self.active("branch1x1", x, 320, Layer::Same(1));
        let three = self.active("branch3x3_1", x, 384, Layer::Same(1));
        let three = self.cross("branch3x3_2", three);
        let double = self.active("branch3x3dbl_1", x, 448, Layer::Same(1));
        let double = self.active("branch3x3dbl_2", double, 384, Layer::Same(3));
        let double = self.cross("branch3x3dbl_3", double);
        let pool = self.pooled(x, 192);
        self.network.concat(&[one, three, double, pool])
    }

    fn cross(&mut self, name: &str, x: Signal) -> Signal {
        let wide = self.active(&format!("{name}a"), x, 384, Layer::Wide(3));
        let high = self.active(&format!("{name}b"), x, 384, Layer::High(3));
        self.network.concat(&[wide, high])
    }
}

enum Layer {
    /// A square kernel that keeps the image's size.
    Same(usize),
    /// A kernel of one row that keeps the image's size.
    Wide(usize),
    /// A kernel of one column that keeps the image's size.
    High(usize),
    /// A 3x3 kernel without padding, of this stride.
    Inside(usize),
}

fn assemble(network: &mut Network, size: &Size) {
    let divisor = size.divisor;
    let mut x = network.input(0);
    let mut stem = Scope { network, name: "", divisor };
    x = stem.active("Conv2d_1a_3x3", x, 32, Layer::Inside(2));
    x = stem.active("Conv2d_2a_3x3", x, 32, Layer::Inside(1));
    x = stem.active("Conv2d_2b_3x3", x, 64, Layer::Same(3));
    x = stem.network.max_pool(x, Window::new(3, 2));
    x = stem.active("Conv2d_3b_1x1", x, 80, Layer::Same(1));
    x = stem.active("Conv2d_4a_3x3", x, 192, Layer::Inside(1));
    x = stem.network.max_pool(x, Window::new(3, 2));
    for module in size.modules {
        let (Small(name, _)
        | Factored(name, _)
        | Wide(name)
        | HalveSmall(name)
        | HalveFactored(name)) = module;
        let mut scope = Scope { network, name, divisor };
        x = match *module {
            Small(_, channels) => scope.small(x, channels),
            Factored(_, channels) => scope.factored(x, channels),
            Wide(_) => scope.wide(x),
            HalveSmall(_) => scope.halve_small(x),
            HalveFactored(_) => scope.halve_factored(x),
        };
    }
    let x = network.global_average_pool(x);
    let x = network.flatten(x, 1);
    let logits = network.classify("fc", x, size.classes);
    network.output("output", logits.id, &[batch(), fixed(size.classes)]);
}
