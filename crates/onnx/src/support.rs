//! Finding every operator of a model that Weft does not have, before anything is built.

use std::collections::{HashMap, HashSet};

use weft_ir::operators;

use crate::error::{LoadError, UnsupportedOperator};
use crate::function::Functions;
use crate::proto::{GraphProto, NodeProto};

/// Fails with all operators that are neither in the table nor functions of the model.
pub(crate) fn check(graph: &GraphProto, functions: &Functions<'_>) -> Result<(), LoadError> {
    let known = operators::registrations().map(|entry| (entry.domain, entry.name)).collect();
    let mut walk = Walk {
        known,
        functions,
        seen: HashSet::new(),
        missing: Vec::new(),
        places: HashMap::new(),
    };
    let mut pending: Vec<&[NodeProto]> = vec![&graph.node];
    while let Some(nodes) = pending.pop() {
        for node in nodes {
            walk.node(node, &mut pending);
        }
    }
    if walk.missing.is_empty() { Ok(()) } else { Err(LoadError::Unsupported(walk.missing)) }
}

struct Walk<'a> {
    known: HashSet<(&'static str, &'static str)>,
    functions: &'a Functions<'a>,
    seen: HashSet<(&'a str, &'a str, &'a str)>,
    missing: Vec<UnsupportedOperator>,
    places: HashMap<(&'a str, &'a str), usize>,
}

impl<'a> Walk<'a> {
    fn node(&mut self, node: &'a NodeProto, pending: &mut Vec<&'a [NodeProto]>) {
        let domain = standard(&node.domain);
        let operator = node.op_type.as_str();
        if let Some(function) = self.functions.find(node) {
            if self.seen.insert((domain, operator, &node.overload)) {
                pending.push(&function.proto.node);
            }
        } else if !is_constant(node) && !self.known.contains(&(domain, operator)) {
            let place = *self.places.entry((domain, operator)).or_insert_with(|| {
                self.missing.push(UnsupportedOperator {
                    domain: domain.into(),
                    operator: operator.into(),
                    nodes: Vec::new(),
                });
                self.missing.len() - 1
            });
            self.missing[place].nodes.push(display_name(node).to_string());
        }
        pending.extend(
            node.attribute.iter().filter_map(|attribute| Some(&*attribute.g.as_ref()?.node)),
        );
    }
}

/// A domain with the two spellings of the standard one made equal.
pub(crate) fn standard(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

/// True for nodes that become constants of the graph.
pub(crate) fn is_constant(node: &NodeProto) -> bool {
    node.op_type == "Constant" && standard(&node.domain).is_empty()
}

/// A node's name, or for nodes without one that of its first output.
pub(crate) fn display_name(node: &NodeProto) -> &str {
    if node.name.is_empty() {
        node.output.iter().find(|output| !output.is_empty()).map_or("", String::as_str)
    } else {
        &node.name
    }
}
