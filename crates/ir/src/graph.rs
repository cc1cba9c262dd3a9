//! The graph: values, and the nodes that compute them, in an order in which they can run.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use crate::attribute::Attributes;
use crate::data_type::DataType;
use crate::error::GraphError;
use crate::operator::Operator;
use crate::tensor::Tensor;

/// A value's place in [`Graph::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(u32);

impl ValueId {
    pub(crate) fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("fewer than 2^32 values"))
    }

    /// The place as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One dimension as a model declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Fixed.
    Known(usize),
    /// Named, and equal wherever the name stands again.
    Symbol(String),
    /// Neither fixed nor named.
    Unknown,
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dimension::Known(size) => write!(f, "{size}"),
            Dimension::Symbol(name) => f.write_str(name),
            Dimension::Unknown => f.write_str("?"),
        }
    }
}

/// A tensor's type as a model declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorType {
    /// The element type.
    pub data_type: DataType,
    /// The dimensions; `None` where not even the rank is declared.
    pub dimensions: Option<Vec<Dimension>>,
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.dimensions {
            None => write!(f, "{}[..]", self.data_type),
            Some(dimensions) => {
                let names: Vec<String> = dimensions.iter().map(Dimension::to_string).collect();
                write!(f, "{}[{}]", self.data_type, names.join(","))
            }
        }
    }
}

/// One edge of the graph.
#[derive(Clone, Debug, Default)]
pub struct ValueInfo {
    /// The value's name in the model; unique within the graph.
    pub name: String,
    /// Its declared type, where it is a tensor and the model declares it.
    pub declared: Option<TensorType>,
    /// Its content, where it is a constant.
    pub constant: Option<Tensor>,
}

/// What a node looked like in its model file; kept so that the model can be written again.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The operator's domain; empty for the standard one.
    pub domain: String,
    /// The operator's name in that domain.
    pub operator: String,
    /// The attributes as given.
    pub attributes: Attributes,
}

/// One computation.
#[derive(Clone, Debug)]
pub struct Node {
    /// The node's name, for messages; may repeat.
    pub name: String,
    /// What it computes.
    pub operator: Arc<dyn Operator>,
    /// What it reads; absent optional inputs are `None`.
    pub inputs: Vec<Option<ValueId>>,
    /// What it writes; outputs nobody asked for are `None`.
    pub outputs: Vec<Option<ValueId>>,
    /// What it was read from; `None` for nodes made by rewrites.
    pub origin: Option<Arc<Origin>>,
}

impl Node {
    /// The operator, where it is of type `T`.
    pub fn is<T: Operator>(&self) -> Option<&T> {
        self.operator.downcast()
    }

    /// The first output, where asked for: the only one for most operators.
    pub fn output(&self) -> Option<ValueId> {
        self.outputs.first().copied().flatten()
    }

    /// One input, where present.
    pub fn input(&self, index: usize) -> Option<ValueId> {
        self.inputs.get(index).copied().flatten()
    }
}

/// A model, or a body of control flow inside one. Every value is an input, a constant, or produced by one node.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The graph's name, for messages.
    pub name: String,
    /// The version of the standard operator set that its nodes are written in.
    pub opset: i64,
    values: Vec<ValueInfo>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) inputs: Vec<ValueId>,
    pub(crate) outputs: Vec<ValueId>,
    captured: usize,
    non_tensor_types: HashMap<ValueId, String>,
    other_opsets: HashMap<String, i64>,
}

impl Graph {
    /// An empty graph.
    pub fn new(name: &str, opset: i64) -> Self {
        Self { name: name.to_string(), opset, ..Self::default() }
    }

    /// All values.
    pub fn values(&self) -> &[ValueInfo] {
        &self.values
    }

    /// The ids of all values.
    pub fn value_ids(&self) -> impl Iterator<Item = ValueId> + use<> {
        (0..self.values.len() as u32).map(ValueId)
    }

    /// One value.
    pub fn value(&self, id: ValueId) -> &ValueInfo {
        &self.values[id.index()]
    }

    /// One value, to be changed.
    pub fn value_mut(&mut self, id: ValueId) -> &mut ValueInfo {
        &mut self.values[id.index()]
    }

    /// A value's content, where it is a constant.
    pub fn constant(&self, id: ValueId) -> Option<&Tensor> {
        self.value(id).constant.as_ref()
    }

    /// The nodes; after [`Graph::sort`], in an order in which they can run.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// What the graph is given.
    pub fn inputs(&self) -> &[ValueId] {
        &self.inputs
    }

    /// What the graph gives back.
    pub fn outputs(&self) -> &[ValueId] {
        &self.outputs
    }

    /// How many of the last inputs a body captures from the graph around it.
    pub fn captured(&self) -> usize {
        self.captured
    }

    /// Adds a value.
    pub fn add_value(&mut self, info: ValueInfo) -> ValueId {
        let id = ValueId::from_index(self.values.len());
        self.values.push(info);
        id
    }

    /// Notes the declared type of a value that is no tensor, in the notation of the standard, such as
    /// `seq(tensor(float32))`; kept so that the model can be written again.
    pub fn declare_non_tensor(&mut self, id: ValueId, declared: String) {
        self.non_tensor_types.insert(id, declared);
    }

    /// The declared type of a value that is no tensor.
    pub fn declared_non_tensor(&self, id: ValueId) -> Option<&str> {
        self.non_tensor_types.get(&id).map(String::as_str)
    }

    /// Notes the version of the operator set of a domain other than the standard one.
    pub fn import_opset(&mut self, domain: &str, version: i64) {
        self.other_opsets.insert(domain.to_string(), version);
    }

    /// The version of the operator set of a domain other than the standard one, where noted.
    pub fn imported_opset(&self, domain: &str) -> Option<i64> {
        self.other_opsets.get(domain).copied()
    }

    /// Adds a value that holds a constant.
    pub fn add_constant(&mut self, name: &str, tensor: Tensor) -> ValueId {
        self.add_value(ValueInfo { name: name.to_string(), declared: None, constant: Some(tensor) })
    }

    /// Makes a value an input of the graph.
    pub fn add_input(&mut self, id: ValueId) {
        self.inputs.push(id);
    }

    /// Makes a value an input that a body captures from the graph around it. Call after all other inputs are added.
    pub fn add_captured_input(&mut self, id: ValueId) {
        self.inputs.push(id);
        self.captured += 1;
    }

    /// Makes a value an output of the graph.
    pub fn add_output(&mut self, id: ValueId) {
        self.outputs.push(id);
    }

    /// Adds a node.
    pub fn add_node(&mut self, node: Node) {
        self.nodes.push(node);
    }

    /// The inputs a caller has to give: those that are not constants.
    pub fn required_inputs(&self) -> impl Iterator<Item = ValueId> + '_ {
        self.inputs.iter().copied().filter(|&id| self.constant(id).is_none())
    }

    /// Puts the nodes in an order in which they can run, keeping the given order where it allows that.
    /// Fails on cycles, on values that nothing produces and on values produced twice.
    pub fn sort(&mut self) -> Result<(), GraphError> {
        let producers = self.producers()?;
        let mut ready: Vec<bool> =
            self.values.iter().map(|value| value.constant.is_some()).collect();
        for input in &self.inputs {
            ready[input.index()] = true;
        }
        let used =
            self.nodes.iter().flat_map(|node| node.inputs.iter().flatten()).chain(&self.outputs);
        for id in used {
            if !ready[id.index()] && !producers.contains_key(id) {
                return Err(GraphError::Undefined(self.value(*id).name.clone()));
            }
        }
        let order = self.run_order(&producers)?;
        let mut slots: Vec<Option<Node>> = self.nodes.drain(..).map(Some).collect();
        self.nodes = order.into_iter().filter_map(|index| slots[index].take()).collect();
        Ok(())
    }

    fn producers(&self) -> Result<HashMap<ValueId, usize>, GraphError> {
        let mut producers = HashMap::new();
        let inputs: HashSet<ValueId> = self.inputs.iter().copied().collect();
        for (index, node) in self.nodes.iter().enumerate() {
            for &output in node.outputs.iter().flatten() {
                let is_source = inputs.contains(&output) || self.constant(output).is_some();
                if is_source || producers.insert(output, index).is_some() {
                    return Err(GraphError::Redefined(self.value(output).name.clone()));
                }
            }
        }
        Ok(producers)
    }

    /// Depth-first order without recursion, since a hostile graph may be a chain of a million nodes.
    fn run_order(&self, producers: &HashMap<ValueId, usize>) -> Result<Vec<usize>, GraphError> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let mut marks = vec![Mark::New; self.nodes.len()];
        let mut order = Vec::with_capacity(self.nodes.len());
        for start in 0..self.nodes.len() {
            let mut stack = vec![(start, 0)];
            while let Some((node, next_input)) = stack.pop() {
                if marks[node] == Mark::Done {
                    continue;
                }
                marks[node] = Mark::Open;
                match self.nodes[node].inputs.get(next_input) {
                    Some(input) => {
                        stack.push((node, next_input + 1));
                        if let Some(&producer) = input.as_ref().and_then(|id| producers.get(id)) {
                            match marks[producer] {
                                Mark::New => stack.push((producer, 0)),
                                Mark::Open => {
                                    return Err(GraphError::Cycle(
                                        self.nodes[producer].name.clone(),
                                    ));
                                }
                                Mark::Done => {}
                            }
                        }
                    }
                    None => {
                        marks[node] = Mark::Done;
                        order.push(node);
                    }
                }
            }
        }
        Ok(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::GraphBuilder;

    fn named(graph: &mut Graph, name: &str) -> ValueId {
        graph.add_value(ValueInfo { name: name.into(), ..Default::default() })
    }

    fn relu(graph: &mut Graph, name: &str, input: ValueId, output: ValueId) {
        let mut builder = GraphBuilder::new("one", 21);
        let x = builder.input("x", DataType::F32, &[]);
        builder.node("Relu", &[x], Attributes::new());
        let mut node = builder.graph().nodes()[0].clone();
        node.name = name.into();
        node.inputs = vec![Some(input)];
        node.outputs = vec![Some(output)];
        graph.add_node(node);
    }

    #[test]
    fn nodes_out_of_order_are_sorted() {
        let mut graph = Graph::new("chain", 21);
        let [x, y, z] = ["x", "y", "z"].map(|name| named(&mut graph, name));
        graph.add_input(x);
        graph.add_output(z);
        relu(&mut graph, "second", y, z);
        relu(&mut graph, "first", x, y);
        graph.sort().unwrap();
        let names: Vec<&str> = graph.nodes().iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["first", "second"]);
    }

    #[test]
    fn malformed_graphs_are_named() {
        let mut cyclic = Graph::new("cyclic", 21);
        let [x, y] = ["x", "y"].map(|name| named(&mut cyclic, name));
        relu(&mut cyclic, "forth", x, y);
        relu(&mut cyclic, "back", y, x);
        assert!(matches!(cyclic.sort(), Err(GraphError::Cycle(_))));

        let mut undefined = Graph::new("undefined", 21);
        let [x, y] = ["x", "y"].map(|name| named(&mut undefined, name));
        relu(&mut undefined, "only", x, y);
        assert_eq!(undefined.sort(), Err(GraphError::Undefined("x".into())));

        let mut twice = Graph::new("twice", 21);
        let [x, y] = ["x", "y"].map(|name| named(&mut twice, name));
        twice.add_input(x);
        relu(&mut twice, "one", x, y);
        relu(&mut twice, "two", x, y);
        assert_eq!(twice.sort(), Err(GraphError::Redefined("y".into())));
    }
}
