//! A model's own functions, found by the nodes that call them.

use std::collections::HashMap;

use crate::proto::{FunctionProto, NodeProto};
use crate::support::standard;

/// The functions of a model.
#[derive(Debug)]
pub(crate) struct Functions<'a>(HashMap<(&'a str, &'a str, &'a str), &'a FunctionProto>);

impl<'a> Functions<'a> {
    pub(crate) fn new(protos: &'a [FunctionProto]) -> Self {
        let key = |proto: &'a FunctionProto| {
            (standard(&proto.domain), proto.name.as_str(), proto.overload.as_str())
        };
        Self(protos.iter().map(|proto| (key(proto), proto)).collect())
    }

    /// The function that a node calls, where it calls one.
    pub(crate) fn find(&self, node: &'a NodeProto) -> Option<&'a FunctionProto> {
        self.0
            .get(&(standard(&node.domain), node.op_type.as_str(), node.overload.as_str()))
            .copied()
    }
}
