//! Which values a body of control flow takes from the graph around it.

use std::collections::HashSet;

use crate::proto::{GraphProto, NodeProto};

/// The names that a node's bodies use and do not define, each once, in order of first use.
pub(crate) fn captured_names<'a>(bodies: impl Iterator<Item = &'a GraphProto>) -> Vec<&'a str> {
    let mut names = Vec::new();
    let mut seen = HashSet::new();
    for body in bodies {
        names.extend(free_names(body).into_iter().filter(|name| seen.insert(*name)));
    }
    names
}

fn free_names(body: &GraphProto) -> Vec<&str> {
    let defined: HashSet<&str> = defined_names(body).collect();
    let mut free = Vec::new();
    let mut seen = HashSet::new();
    let is_free = |name: &str| !name.is_empty() && !defined.contains(name);
    for node in &body.node {
        let nested = captured_names(bodies(node));
        let used = node.input.iter().map(String::as_str).chain(nested);
        free.extend(used.filter(|name| is_free(name) && seen.insert(*name)));
    }
    let outputs = body.output.iter().map(|output| output.name.as_str());
    free.extend(outputs.filter(|name| is_free(name) && seen.insert(*name)));
    free
}

/// The names that a body gives to values of its own.
pub(crate) fn defined_names(body: &GraphProto) -> impl Iterator<Item = &str> {
    let inputs = body.input.iter().map(|input| input.name.as_str());
    let dense = body.initializer.iter().map(|tensor| tensor.name.as_str());
    let sparse = body.sparse_initializer.iter().filter_map(|sparse| sparse.values.as_ref());
    let outputs = body.node.iter().flat_map(|node| node.output.iter().map(String::as_str));
    inputs.chain(dense).chain(sparse.map(|tensor| tensor.name.as_str())).chain(outputs)
}

/// The bodies that stand in a node's own attributes.
pub(crate) fn bodies(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute.iter().filter_map(|attribute| attribute.g.as_ref())
}
