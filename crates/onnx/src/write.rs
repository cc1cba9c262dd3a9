//! From graphs to messages: values get names, captured inputs become plain references again.

use std::collections::{BTreeSet, HashSet};

use bytes::Bytes;
use weft_ir::{Attribute, Graph, Node, ValueId};

use crate::declared::{tensor_type_proto, type_from_name, undeclared_outputs};
use crate::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, ValueInfoProto,
    attribute_type,
};
use crate::save::SaveError;
use crate::store::{self, DataFile};

/// The newest version of the standard operator set that each file format came with, from format 8 on.
const IR_VERSIONS: &[(i64, i64)] = &[(8, 18), (9, 20), (10, 22), (11, 23), (12, 24)];
const NEWEST_IR_VERSION: i64 = 13;

/// Writes the graphs of one model.
pub(crate) struct Writer<'a> {
    /// Where large tensors go, if not into the model.
    beside: Option<&'a mut DataFile>,
    /// Names in the graph at hand and in those around it, which must differ.
    taken: HashSet<String>,
    domains: BTreeSet<String>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(beside: Option<&'a mut DataFile>) -> Self {
        Self { beside, taken: HashSet::new(), domains: BTreeSet::new() }
    }

    /// The whole model.
    pub(crate) fn model(mut self, graph: &Graph) -> Result<ModelProto, SaveError> {
        let mut proto = self.graph(graph, &[])?;
        for (output, declared) in proto.output.iter_mut().zip(undeclared_outputs(graph)) {
            if let Some(declared) = declared {
                output.r#type = Some(tensor_type_proto(&declared));
            }
        }
        let version = |domain: &str, version| OperatorSetIdProto {
            domain: Some(domain.to_string()),
            version: Some(version),
        };
        // Graphs that were built in code note no versions; domains beside the standard one mostly have only the first.
        let others = self
            .domains
            .iter()
            .map(|domain| version(domain, graph.imported_opset(domain).unwrap_or(1)));
        let ir_version = IR_VERSIONS.iter().find(|(_, opset)| graph.opset <= *opset);
        Ok(ModelProto {
            ir_version: Some(ir_version.map_or(NEWEST_IR_VERSION, |(version, _)| *version)),
            producer_name: "weft".into(),
            producer_version: env!("CARGO_PKG_VERSION").into(),
            graph: Some(proto),
            opset_import: std::iter::once(version("", graph.opset)).chain(others).collect(),
            functions: Vec::new(),
        })
    }

    /// One graph. `captured` are the names that its last inputs have in the graph around it.
    fn graph(&mut self, graph: &Graph, captured: &[String]) -> Result<GraphProto, SaveError> {
        let own_inputs = graph.inputs().len().saturating_sub(captured.len());
        let (own_inputs, captured_inputs) = graph.inputs().split_at(own_inputs);
        let mut names = vec![String::new(); graph.values().len()];
        for (id, name) in captured_inputs.iter().zip(captured) {
            names[id.index()].clone_from(name);
        }
        let own: Vec<String> = self.name_values(graph, &mut names);
        let name = |id: &ValueId| names[id.index()].clone();
        let info = |id: &ValueId| {
            let tensor = graph.value(*id).declared.as_ref().map(tensor_type_proto);
            let declared = tensor.or_else(|| type_from_name(graph.declared_non_tensor(*id)?));
            ValueInfoProto { name: name(id), r#type: declared }
        };

        let mut proto = GraphProto {
            name: if graph.name.is_empty() { "graph".into() } else { graph.name.clone() },
            input: own_inputs.iter().map(info).collect(),
            output: graph.outputs().iter().map(info).collect(),
            ..GraphProto::default()
        };
        let interface: HashSet<ValueId> =
            graph.inputs().iter().chain(graph.outputs()).copied().collect();
        let inner = graph.nodes().iter().flat_map(|node| node.outputs.iter().flatten());
        let is_declared =
            |id: &&ValueId| !interface.contains(id) && graph.value(**id).declared.is_some();
        proto.value_info = inner.filter(is_declared).map(info).collect();

        let read = graph.nodes().iter().flat_map(|node| node.inputs.iter().flatten());
        let mut seen = HashSet::new();
        for id in read.chain(graph.outputs()).chain(graph.inputs()) {
            if let Some(tensor) = graph.constant(*id)
                && seen.insert(*id)
            {
                let beside = self.beside.as_deref_mut();
                proto.initializer.push(store::write(&names[id.index()], tensor, beside)?);
            }
        }
        for node in graph.nodes() {
            proto.node.push(self.node(node, &names)?);
        }
        own.iter().for_each(|name| {
            self.taken.remove(name);
        });
        Ok(proto)
    }

    /// Fills in the names that are still empty, keeping the graph's own where they are free, and returns the new ones.
    fn name_values(&mut self, graph: &Graph, names: &mut [String]) -> Vec<String> {
        let interface = graph.inputs().iter().chain(graph.outputs()).copied();
        let mut own = Vec::new();
        for id in interface.chain(graph.value_ids()) {
            if !names[id.index()].is_empty() {
                continue;
            }
            let wanted = match graph.value(id).name.as_str() {
                "" => "value",
                name => name,
            };
            let mut name = wanted.to_string();
            let mut attempt = id.index();
            while !self.taken.insert(name.clone()) {
                name = format!("{wanted}_{attempt}");
                attempt += 1;
            }
            own.push(name.clone());
            names[id.index()] = name;
        }
        own
    }

    fn node(&mut self, node: &Node, names: &[String]) -> Result<NodeProto, SaveError> {
        let Some(origin) = &node.origin else {
            return Err(SaveError::Rewritten {
                node: node.name.clone(),
                operator: node.operator.name().to_string(),
            });
        };
        let name = |id: &Option<ValueId>| id.map_or(String::new(), |id| names[id.index()].clone());
        let mut input: Vec<String> = node.inputs.iter().map(name).collect();
        let captured = origin.attributes.iter().find_map(|(_, attribute)| match attribute {
            Attribute::Graph(body) => Some(body.captured()),
            _ => None,
        });
        let captured = input.split_off(input.len().saturating_sub(captured.unwrap_or(0)));
        let mut attribute = Vec::new();
        for (name, value) in origin.attributes.iter() {
            let is_type = origin.operator == "Optional" && name == "type";
            let parsed = match value {
                Attribute::String(text) if is_type => type_from_name(text),
                _ => None,
            };
            attribute.push(match parsed {
                Some(parsed) => AttributeProto {
                    name: name.into(),
                    tp: Some(parsed),
                    r#type: attribute_type::TYPE_PROTO,
                    ..AttributeProto::default()
                },
                None => self.attribute(name, value, &captured)?,
            });
        }
        if !origin.domain.is_empty() {
            self.domains.insert(origin.domain.clone());
        }
        Ok(NodeProto {
            input,
            output: node.outputs.iter().map(name).collect(),
            name: node.name.clone(),
            op_type: origin.operator.clone(),
            attribute,
            domain: origin.domain.clone(),
            overload: String::new(),
        })
    }

    fn attribute(
        &mut self,
        name: &str,
        value: &Attribute,
        captured: &[String],
    ) -> Result<AttributeProto, SaveError> {
        let bytes = |text: &String| Bytes::copy_from_slice(text.as_bytes());
        let mut proto = AttributeProto { name: name.into(), ..AttributeProto::default() };
        proto.r#type = match value {
            Attribute::Int(value) => {
                proto.i = Some(*value);
                attribute_type::INT
            }
            Attribute::Float(value) => {
                proto.f = Some(*value);
                attribute_type::FLOAT
            }
            Attribute::String(value) => {
                proto.s = Some(bytes(value));
                attribute_type::STRING
            }
            Attribute::Tensor(value) => {
                // Some readers do not look for an attribute's elements in other files.
                proto.t = Some(store::write("", value, None)?);
                attribute_type::TENSOR
            }
            Attribute::Graph(body) => {
                proto.g = Some(self.graph(body, captured)?);
                attribute_type::GRAPH
            }
            Attribute::Ints(values) => {
                proto.ints.clone_from(values);
                attribute_type::INTS
            }
            Attribute::Floats(values) => {
                proto.floats.clone_from(values);
                attribute_type::FLOATS
            }
            Attribute::Strings(values) => {
                proto.strings = values.iter().map(bytes).collect();
                attribute_type::STRINGS
            }
        };
        Ok(proto)
    }
}
