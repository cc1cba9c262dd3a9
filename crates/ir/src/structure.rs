//! What a graph is apart from its weights: models that were trained apart have the same structure where they have the same
//! architecture.

use std::collections::HashMap;
use std::fmt::{self, Write};

use xxhash_rust::xxh3::Xxh3;

use crate::attribute::{Attribute, Attributes};
use crate::graph::{Graph, Node, ValueId};
use crate::tensor::Tensor;
use crate::with_elements;

/// Floating-point constants of more elements are weights. Fewer parametrise an operator, such as the bounds of a clip or the
/// scales of a resize, and count by their content.
const MOST_PARAMETERS: usize = 4;

/// Operators whose floating-point constants are weights, however few elements they have: a layer may have one output.
const WEIGHTED: [&str; 6] =
    ["BatchNormalization", "Conv", "ConvTranspose", "Gemm", "LayerNormalization", "MatMul"];

impl Graph {
    /// Equal for graphs that differ in the content of their weights alone, and in the names of what is inside.
    pub fn structure(&self) -> u128 {
        let mut hash = Hash(Xxh3::new());
        self.describe(&mut hash).expect("a hash takes any text");
        hash.0.digest128()
    }

    fn describe(&self, text: &mut dyn Write) -> fmt::Result {
        let mut description = Description { graph: self, text, numbers: HashMap::new() };
        description.write()
    }
}

struct Hash(Xxh3);

impl Write for Hash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

struct Description<'a> {
    graph: &'a Graph,
    text: &'a mut dyn Write,
    /// Values are told apart by the order in which they are met: ids and names depend on who wrote the file.
    numbers: HashMap<ValueId, usize>,
}

impl Description<'_> {
    fn write(&mut self) -> fmt::Result {
        let graph = self.graph;
        write!(self.text, "opset {} captures {};", graph.opset, graph.captured())?;
        for &id in graph.inputs() {
            self.outside("in", id)?;
        }
        for node in graph.nodes() {
            self.node(node)?;
        }
        for &id in graph.outputs() {
            self.outside("out", id)?;
        }
        Ok(())
    }

    /// An input or an output, by its name.
    fn outside(&mut self, what: &str, id: ValueId) -> fmt::Result {
        let info = self.graph.value(id);
        write!(self.text, "{what} {:?} ", info.name)?;
        if let Some(declared) = &info.declared {
            write!(self.text, "{declared} ")?;
        }
        if let Some(declared) = self.graph.declared_non_tensor(id) {
            write!(self.text, "{declared} ")?;
        }
        self.value(Some(id), MOST_PARAMETERS)?;
        self.text.write_str(";")
    }

    fn node(&mut self, node: &Node) -> fmt::Result {
        match &node.origin {
            Some(origin) => {
                write!(self.text, "{:?} {:?} ", origin.domain, origin.operator)?;
                if let Some(version) = self.graph.imported_opset(&origin.domain) {
                    write!(self.text, "at {version} ")?;
                }
                self.attributes(&origin.attributes)?;
            }
            None => write!(self.text, "{} {:?} ", node.operator.name(), node.operator)?,
        }
        let most = if WEIGHTED.contains(&node.operator.name()) { 0 } else { MOST_PARAMETERS };
        for &input in &node.inputs {
            self.value(input, most)?;
        }
        self.text.write_str("->")?;
        for &output in &node.outputs {
            self.value(output, MOST_PARAMETERS)?;
        }
        self.text.write_str(";")
    }

    fn attributes(&mut self, attributes: &Attributes) -> fmt::Result {
        for (name, attribute) in attributes.iter() {
            write!(self.text, "{name:?}=")?;
            match attribute {
                Attribute::Tensor(tensor) => constant(self.text, tensor, MOST_PARAMETERS)?,
                Attribute::Graph(body) => {
                    self.text.write_str("{")?;
                    body.describe(self.text)?;
                    self.text.write_str("}")?;
                }
                plain => write!(self.text, "{plain:?}")?,
            }
            self.text.write_str(" ")?;
        }
        Ok(())
    }

    /// A value by its number, with what is to be known of it where it is met for the first time. More than so many
    /// floating-point numbers are weights.
    fn value(&mut self, id: Option<ValueId>, most_parameters: usize) -> fmt::Result {
        let Some(id) = id else { return self.text.write_str("none ") };
        let next = self.numbers.len();
        let number = *self.numbers.entry(id).or_insert(next);
        write!(self.text, "{number} ")?;
        match self.graph.constant(id) {
            Some(tensor) if number == next => constant(self.text, tensor, most_parameters),
            _ => Ok(()),
        }
    }
}

fn constant(text: &mut dyn Write, tensor: &Tensor, most_parameters: usize) -> fmt::Result {
    write!(text, "{}{:?}", tensor.data_type(), tensor.shape())?;
    if tensor.data_type().is_float() && tensor.len() > most_parameters {
        return text.write_str(" ");
    }
    with_elements!(tensor, elements => write!(text, "{:?} ", &elements[..]))
}

#[cfg(test)]
mod tests {
    use crate::{Attributes, DataType, Graph, GraphBuilder, Tensor};

    /// A linear layer with an activation, in which one thing may be another.
    fn network(weight: f32, shift: f32, alpha: f32, output: &str, rows: i64) -> Graph {
        let mut builder = GraphBuilder::new("network", 21);
        let x = builder.input("x", DataType::F32, &[1, 4]);
        let weights = Tensor::filled(vec![4, 4], weight).unwrap();
        let weights = builder.constant("weights", weights);
        let shift = builder.constant("shift", Tensor::vector(vec![shift]));
        let indices = builder.constant("indices", Tensor::vector(vec![rows; 9]));
        let product = builder.node("MatMul", &[x, weights], Attributes::new());
        let sum = builder.node("Add", &[product, shift], Attributes::new());
        let y = builder.node("LeakyRelu", &[sum], Attributes::new().with("alpha", alpha));
        let rows = builder.node("Gather", &[y, indices], Attributes::new());
        builder.output(output, rows);
        builder.finish().unwrap()
    }

    #[test]
    fn weights_do_not_count_and_everything_else_does() {
        let structure = network(0.5, 1.0, 0.1, "y", 0).structure();
        assert_eq!(network(0.25, 1.0, 0.1, "y", 0).structure(), structure);
        for (what, other) in [
            ("a parameter", network(0.5, 2.0, 0.1, "y", 0)),
            ("an attribute", network(0.5, 1.0, 0.2, "y", 0)),
            ("a name outside", network(0.5, 1.0, 0.1, "z", 0)),
            ("indices, however many", network(0.5, 1.0, 0.1, "y", 1)),
        ] {
            assert_ne!(other.structure(), structure, "{what}");
        }
    }

    #[test]
    fn connections_count() {
        let sum = |is_crossed: bool| {
            let mut builder = GraphBuilder::new("difference", 21);
            let a = builder.input("a", DataType::F32, &[2]);
            let b = builder.input("b", DataType::F32, &[2]);
            let inputs = if is_crossed { [b, a] } else { [a, b] };
            let y = builder.node("Sub", &inputs, Attributes::new());
            builder.output("y", y);
            builder.finish().unwrap().structure()
        };
        assert_ne!(sum(false), sum(true));
    }
}
