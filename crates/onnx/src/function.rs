//! A model's own functions, found by the nodes that call them.

use std::collections::HashMap;

use prost::Message;

use crate::capture::bodies;
use crate::proto::{FunctionProto, NodeProto};
use crate::support::standard;

/// What a node takes in memory, roughly, beside what stands in the file.
const NODE_BYTES: usize = 1024;

/// One function.
#[derive(Debug)]
pub(crate) struct Function<'a> {
    pub(crate) proto: &'a FunctionProto,
    /// What one call expands to, roughly, without the calls in it.
    pub(crate) inlined_bytes: usize,
}

/// The functions of a model.
#[derive(Debug)]
pub(crate) struct Functions<'a>(HashMap<(&'a str, &'a str, &'a str), Function<'a>>);

impl<'a> Functions<'a> {
    pub(crate) fn new(protos: &'a [FunctionProto]) -> Self {
        let entry = |proto: &'a FunctionProto| {
            let key = (standard(&proto.domain), proto.name.as_str(), proto.overload.as_str());
            let nodes = 1 + node_count(&proto.node);
            let inlined_bytes = proto.encoded_len().saturating_add(nodes * NODE_BYTES);
            (key, Function { proto, inlined_bytes })
        };
        Self(protos.iter().map(entry).collect())
    }

    /// The function that a node calls, where it calls one.
    pub(crate) fn find(&self, node: &'a NodeProto) -> Option<&Function<'a>> {
        self.0.get(&(standard(&node.domain), node.op_type.as_str(), node.overload.as_str()))
    }
}

/// The nodes, and those in their bodies.
fn node_count(nodes: &[NodeProto]) -> usize {
    let nested = |node: &NodeProto| bodies(node).map(|body| node_count(&body.node)).sum::<usize>();
    nodes.len() + nodes.iter().map(nested).sum::<usize>()
}
