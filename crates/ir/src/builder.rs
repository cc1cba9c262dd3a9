//! Building graphs in code: the zoo and the tests write models with this.

use std::sync::Arc;

use crate::attribute::Attributes;
use crate::data_type::DataType;
use crate::error::{GraphError, OperatorError};
use crate::graph::{Dimension, Graph, Node, Origin, TensorType, ValueId, ValueInfo};
use crate::operator::NodeSource;
use crate::operators;
use crate::tensor::Tensor;

/// A graph under construction. A node that cannot be built is reported by [`GraphBuilder::finish`].
#[derive(Debug)]
pub struct GraphBuilder {
    graph: Graph,
    problem: Option<GraphError>,
}

impl GraphBuilder {
    /// An empty graph whose nodes are written in version `opset` of the standard operator set.
    pub fn new(name: &str, opset: i64) -> Self {
        Self { graph: Graph::new(name, opset), problem: None }
    }

    /// The graph as it stands.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// An input of known shape.
    pub fn input(&mut self, name: &str, data_type: DataType, shape: &[usize]) -> ValueId {
        let dimensions: Vec<Dimension> = shape.iter().map(|&size| Dimension::Known(size)).collect();
        self.symbolic_input(name, data_type, &dimensions)
    }

    /// An input some of whose dimensions are fixed later.
    pub fn symbolic_input(
        &mut self,
        name: &str,
        data_type: DataType,
        dimensions: &[Dimension],
    ) -> ValueId {
        let declared = Some(TensorType { data_type, dimensions: Some(dimensions.to_vec()) });
        let id =
            self.graph.add_value(ValueInfo { name: name.to_string(), declared, constant: None });
        self.graph.add_input(id);
        id
    }

    /// A constant.
    pub fn constant(&mut self, name: &str, tensor: Tensor) -> ValueId {
        self.graph.add_constant(name, tensor)
    }

    /// A node of the standard domain with one output.
    pub fn node(&mut self, operator: &str, inputs: &[ValueId], attributes: Attributes) -> ValueId {
        let inputs: Vec<Option<ValueId>> = inputs.iter().copied().map(Some).collect();
        self.node_with(operator, &inputs, 1, attributes)[0]
    }

    /// A node of the standard domain with absent inputs or several outputs.
    pub fn node_with(
        &mut self,
        operator: &str,
        inputs: &[Option<ValueId>],
        output_count: usize,
        attributes: Attributes,
    ) -> Vec<ValueId> {
        let name = format!("{operator}_{}", self.graph.nodes().len());
        let outputs: Vec<ValueId> = (0..output_count)
            .map(|index| {
                let name = if index == 0 { name.clone() } else { format!("{name}_{index}") };
                self.graph.add_value(ValueInfo { name, ..ValueInfo::default() })
            })
            .collect();
        let source = NodeSource {
            domain: "",
            operator,
            opset: self.graph.opset,
            attributes: &attributes,
            input_count: inputs.len(),
            output_count,
        };
        match operators::build(&source) {
            Ok(built) => self.graph.add_node(Node {
                name,
                operator: built,
                inputs: inputs.to_vec(),
                outputs: outputs.iter().copied().map(Some).collect(),
                origin: Some(Arc::new(Origin {
                    domain: String::new(),
                    operator: operator.into(),
                    attributes,
                })),
            }),
            Err(source) => {
                self.note(GraphError::Node { node: name, operator: operator.into(), source });
            }
        }
        outputs
    }

    fn note(&mut self, problem: GraphError) {
        self.problem.get_or_insert(problem);
    }

    /// Makes a value an output under a name of its own.
    pub fn output(&mut self, name: &str, id: ValueId) {
        self.graph.value_mut(id).name = name.to_string();
        self.graph.add_output(id);
    }

    /// Declares the type of an output, as model files do.
    pub fn declare(&mut self, id: ValueId, data_type: DataType, dimensions: &[Dimension]) {
        self.graph.value_mut(id).declared =
            Some(TensorType { data_type, dimensions: Some(dimensions.to_vec()) });
    }

    /// The finished graph, sorted and checked.
    pub fn finish(mut self) -> Result<Graph, GraphError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        self.graph.sort()?;
        Ok(self.graph)
    }
}

/// An operator of the standard domain built from its attributes alone, as tests want it.
pub fn standard_operator(
    operator: &str,
    opset: i64,
    attributes: &Attributes,
) -> Result<Arc<dyn crate::Operator>, OperatorError> {
    operators::build(&NodeSource {
        domain: "",
        operator,
        opset,
        attributes,
        input_count: 1,
        output_count: 1,
    })
}
