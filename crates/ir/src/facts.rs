//! Inference over a whole graph, folding what depends on constants alone.

use crate::error::{GraphError, OperatorError};
use crate::fact::Fact;
use crate::graph::{Graph, Node, ValueId, ValueInfo};
use crate::operator::{InputFacts, Inputs};
use crate::tensor::checked_count;
use crate::value::Value;

/// The most bytes that a folded constant may take beyond the constants it is made from.
const MAX_FOLDED_GROWTH_BYTES: usize = 16 << 20;

/// What is known of every value of one graph, by value.
#[derive(Clone, Debug, Default)]
pub struct Facts(Vec<Fact>);

impl Facts {
    /// What is known of one value.
    pub fn of(&self, id: ValueId) -> &Fact {
        &self.0[id.index()]
    }

    /// Forgets a constant's content, and keeps its type and shape.
    pub fn release_constant(&mut self, id: ValueId) {
        self.0[id.index()].constant = None;
    }

    pub(crate) fn set(&mut self, id: ValueId, fact: Fact) {
        if self.0.len() <= id.index() {
            self.0.resize(id.index() + 1, Fact::unknown());
        }
        self.0[id.index()] = fact;
    }
}

fn at_node(node: &Node) -> impl Fn(OperatorError) -> GraphError + '_ {
    |source| GraphError::Node {
        node: node.name.clone(),
        operator: node.operator.name().to_string(),
        source,
    }
}

/// What is known of a node's outputs, given what is known of its inputs.
pub(crate) fn infer_node(node: &Node, facts: &Facts) -> Result<Vec<Fact>, GraphError> {
    let inputs: Vec<Option<&Fact>> =
        node.inputs.iter().map(|input| input.map(|id| facts.of(id))).collect();
    let mut inferred = node
        .operator
        .infer(&InputFacts::new(&inputs, node.outputs.len()))
        .map_err(at_node(node))?;
    inferred.resize(node.outputs.len(), Fact::unknown());
    for fact in &inferred {
        if let (Some(data_type), Some(shape)) = (fact.data_type, fact.shape()) {
            checked_count(&shape, data_type).map_err(at_node(node))?;
        }
    }
    Ok(inferred)
}

/// Infers every value of `graph` from `inputs`, one fact per graph input, changing nothing. Values past a node that
/// refuses these inputs stay unknown.
pub(crate) fn infer_leniently(graph: &Graph, inputs: &[Fact]) -> Facts {
    let mut facts = known_facts(graph, inputs);
    for node in graph.nodes() {
        let inferred =
            infer_node(node, &facts).unwrap_or_else(|_| vec![Fact::unknown(); node.outputs.len()]);
        for (output, fact) in node.outputs.iter().zip(inferred) {
            if let Some(id) = output {
                facts.set(*id, fact);
            }
        }
    }
    facts
}

/// What is known before anything is inferred: constants and inputs.
fn known_facts(graph: &Graph, inputs: &[Fact]) -> Facts {
    let constant =
        |value: &ValueInfo| value.constant.clone().map_or_else(Fact::unknown, Fact::constant);
    let mut facts = Facts(graph.values().iter().map(constant).collect());
    for (&id, fact) in graph.inputs().iter().zip(inputs) {
        if graph.constant(id).is_none() {
            facts.set(id, fact.clone());
        }
    }
    facts
}

/// Infers every value of `graph` from `inputs`, one fact per graph input, and turns nodes that depend on constants
/// alone into constants. The graph must be sorted.
pub(crate) fn infer_and_fold(graph: &mut Graph, inputs: &[Fact]) -> Result<Facts, GraphError> {
    let mut facts = known_facts(graph, inputs);
    for node in std::mem::take(&mut graph.nodes) {
        let mut inferred = infer_node(&node, &facts)?;
        if let Some(values) = fold(&node, &facts, &inferred)? {
            for (fact, value) in inferred.iter_mut().zip(values) {
                if let Value::Tensor(tensor) = value {
                    *fact = Fact::constant(tensor);
                }
            }
        }
        let mut is_folded = true;
        for (output, fact) in node.outputs.iter().zip(inferred) {
            let Some(id) = *output else { continue };
            is_folded &= fact.constant.is_some();
            graph.value_mut(id).constant = fact.constant.clone();
            facts.set(id, fact);
        }
        if !is_folded {
            // A node with one constant output among several still produces it, so it must not be a constant too.
            for id in node.outputs.iter().flatten() {
                graph.value_mut(*id).constant = None;
            }
            graph.nodes.push(node);
        }
    }
    Ok(facts)
}

fn fold(node: &Node, facts: &Facts, inferred: &[Fact]) -> Result<Option<Vec<Value>>, GraphError> {
    let has_body = node.origin.as_ref().is_some_and(|origin| origin.attributes.has_body());
    if has_body || !node.operator.is_deterministic() {
        return Ok(None);
    }
    let mut arguments = Vec::with_capacity(node.inputs.len());
    let mut given_bytes = 0usize;
    for input in &node.inputs {
        arguments.push(match input {
            None => None,
            Some(id) => match &facts.of(*id).constant {
                None => return Ok(None),
                Some(tensor) => {
                    given_bytes += tensor.size_bytes();
                    Some(Value::Tensor(tensor.clone()))
                }
            },
        });
    }
    let Some(sizes) = inferred.iter().map(Fact::size_bytes).collect::<Option<Vec<usize>>>() else {
        // Without a known size, only small inputs are safe to expand ahead of time.
        if given_bytes > MAX_FOLDED_GROWTH_BYTES {
            return Ok(None);
        }
        return evaluate(node, &arguments).map(Some);
    };
    let total = sizes.iter().fold(0usize, |sum, &size| sum.saturating_add(size));
    if total > given_bytes.saturating_add(MAX_FOLDED_GROWTH_BYTES) {
        return Ok(None);
    }
    evaluate(node, &arguments).map(Some)
}

fn evaluate(node: &Node, arguments: &[Option<Value>]) -> Result<Vec<Value>, GraphError> {
    node.operator.evaluate(&Inputs::new(arguments, node.outputs.len())).map_err(at_node(node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::GraphBuilder;
    use crate::data_type::DataType;
    use crate::tensor::Tensor;

    fn expanded(shape: Vec<i64>) -> Result<Facts, GraphError> {
        let mut builder = GraphBuilder::new("expand", 17);
        let x = builder.input("x", DataType::F32, &[1]);
        let shape = builder.constant("shape", Tensor::vector(shape));
        let y = builder.node("Expand", &[x, shape], Attributes::new());
        builder.output("y", y);
        infer_and_fold(&mut builder.finish().unwrap(), &[Fact::new(DataType::F32, &[1])])
    }

    #[test]
    fn a_value_past_the_limit_is_refused_before_anything_runs() {
        assert!(expanded(vec![4, 4]).is_ok());
        for shape in [vec![1 << 33, 1 << 20], vec![1 << 31], vec![1 << 40, 1 << 40]] {
            assert!(matches!(
                expanded(shape),
                Err(GraphError::Node { source: OperatorError::TooLarge { .. }, .. })
            ));
        }
    }
}
