//! Moving elements, and shapes computed from other shapes, as exporters of dynamic models write them.

use weft_ir::{Attributes, ValueId};

use crate::network::Network;

/// One entry of a shape that a node computes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extent {
    /// A number.
    Fixed(i64),
    /// A list of one element, computed by a node.
    Computed(ValueId),
}

impl Network {
    /// One dimension of a value as a list of one element: `Shape`, `Gather`, `Unsqueeze`.
    pub(crate) fn extent(&mut self, x: ValueId, axis: i64) -> ValueId {
        let shape = self.op("Shape", &[x]);
        let axis = self.scalar(axis);
        let size = self.op_with("Gather", &[shape, axis], Attributes::new().with("axis", 0i64));
        self.unsqueeze(size, 0)
    }

    /// The shape with these entries.
    pub(crate) fn shape_of(&mut self, extents: &[Extent]) -> ValueId {
        let parts: Vec<ValueId> = extents
            .iter()
            .map(|extent| match *extent {
                Extent::Fixed(size) => self.list(&[size]),
                Extent::Computed(id) => id,
            })
            .collect();
        self.op_with("Concat", &parts, Attributes::new().with("axis", 0i64))
    }

    /// A reshape to a shape known in advance; 0 keeps a dimension, -1 takes what is left.
    pub(crate) fn reshape(&mut self, x: ValueId, shape: &[i64]) -> ValueId {
        let shape = self.list(shape);
        self.op("Reshape", &[x, shape])
    }

    pub(crate) fn transpose(&mut self, x: ValueId, permutation: &[i64]) -> ValueId {
        self.op_with("Transpose", &[x], Attributes::new().with("perm", permutation))
    }

    pub(crate) fn unsqueeze(&mut self, x: ValueId, axis: i64) -> ValueId {
        let axes = self.list(&[axis]);
        self.op("Unsqueeze", &[x, axes])
    }

    /// The elements `from .. to` along one axis.
    pub(crate) fn slice(&mut self, x: ValueId, axis: i64, from: i64, to: ValueId) -> ValueId {
        let (from, axis) = (self.list(&[from]), self.list(&[axis]));
        self.op("Slice", &[x, from, to, axis])
    }

    /// Parts of these sizes along one axis.
    pub(crate) fn split(&mut self, x: ValueId, axis: i64, sizes: &[i64]) -> Vec<ValueId> {
        let attributes = Attributes::new().with("axis", axis);
        let inputs = [Some(x), Some(self.list(sizes))];
        self.op_outputs("Split", &inputs, sizes.len(), attributes)
    }

    pub(crate) fn softmax(&mut self, x: ValueId) -> ValueId {
        self.op_with("Softmax", &[x], Attributes::new().with("axis", -1i64))
    }
}
