//! From messages to graphs: names become values, bodies get their captured values as inputs, function calls are inlined.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use weft_ir::{
    Attribute, Attributes, Graph, GraphError, Node, NodeSource, OperatorError, Origin, Tensor,
    TensorType, ValueId, ValueInfo, operators,
};

use crate::attribute;
use crate::capture::{bodies, captured_names, defined_names};
use crate::declared::{tensor_type, type_name};
use crate::error::{LoadError, NodeProblem};
use crate::function::{Function, Functions};
use crate::limits::{MAX_BODIES, MAX_INLINED_BYTES, MAX_NESTING};
use crate::opset::Opsets;
use crate::proto::{
    AttributeProto, FunctionProto, GraphProto, NodeProto, TypeProto, TypeValue, ValueInfoProto,
    attribute_type,
};
use crate::support::{display_name, is_constant, standard};
use crate::tensor::TensorReader;

/// What it takes to build the graphs of one model.
pub(crate) struct Builder<'a> {
    functions: &'a Functions<'a>,
    reader: TensorReader,
    /// The operator sets of the model itself, which functions may differ from.
    opsets: Rc<Opsets>,
    /// True for files so old that an input with an initialiser is a constant and nothing else.
    initialised_inputs_are_constants: bool,
    calls: Vec<&'a FunctionProto>,
    call_count: usize,
    inlined_bytes: usize,
    nesting: usize,
}

/// What the nodes of a model, or of one function call, have in common.
#[derive(Clone)]
struct Context<'a> {
    opsets: Rc<Opsets>,
    /// What the function's attributes are in this call.
    attributes: Rc<HashMap<&'a str, &'a AttributeProto>>,
    /// Set before the names of values that come from a function call, to keep them apart.
    prefix: String,
}

/// The values that nodes can name; absent optional inputs of functions as `None`.
type Names<'a> = HashMap<&'a str, Option<ValueId>>;

/// A value that a body takes from the graph around it.
struct Captured<'a> {
    name: &'a str,
    id: Option<ValueId>,
    declared: Option<TensorType>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(
        functions: &'a Functions<'a>,
        reader: TensorReader,
        opsets: Opsets,
        initialised_inputs_are_constants: bool,
    ) -> Self {
        Self {
            functions,
            reader,
            opsets: Rc::new(opsets),
            initialised_inputs_are_constants,
            calls: Vec::new(),
            call_count: 0,
            inlined_bytes: 0,
            nesting: 0,
        }
    }

    /// The model's own graph.
    pub(crate) fn model(&mut self, proto: &'a GraphProto) -> Result<Graph, LoadError> {
        let context = Context {
            opsets: self.opsets.clone(),
            attributes: Rc::default(),
            prefix: String::new(),
        };
        let mut graph = self.graph(proto, &context, &[])?;
        for (domain, version) in self.opsets.others() {
            graph.import_opset(domain, version);
        }
        Ok(graph)
    }

    fn graph(
        &mut self,
        proto: &'a GraphProto,
        context: &Context<'a>,
        captured: &[Captured<'a>],
    ) -> Result<Graph, LoadError> {
        let mut graph = Graph::new(&proto.name, context.opsets.standard());
        let mut names = Names::new();
        self.sources(&mut graph, &mut names, proto)?;
        let own: HashSet<&str> = match captured {
            [] => HashSet::new(),
            _ => defined_names(proto).collect(),
        };
        for value in captured {
            // What another body of the node captures, this one may have under the same name for itself.
            let is_shadowed = own.contains(value.name);
            let id = value.id.map(|_| {
                let prefix = if is_shadowed { "outer/" } else { "" };
                let name = format!("{prefix}{}", value.name);
                let declared = value.declared.clone();
                let id = graph.add_value(ValueInfo { name, declared, constant: None });
                graph.add_captured_input(id);
                id
            });
            if !is_shadowed {
                names.insert(value.name, id);
            }
        }
        self.nodes(&mut graph, &mut names, HashMap::new(), &proto.node, context)?;
        for info in proto.value_info.iter().chain(&proto.output) {
            declare(&mut graph, &names, info);
        }
        for output in &proto.output {
            let id = names.get(output.name.as_str()).copied().flatten();
            let id = id.ok_or_else(|| undefined(&graph, &output.name))?;
            graph.add_output(id);
        }
        graph.sort().map_err(|problem| LoadError::Graph {
            graph: graph.name.clone(),
            problem: Box::new(problem),
        })?;
        Ok(graph)
    }

    /// Inputs and initialisers.
    fn sources(
        &mut self,
        graph: &mut Graph,
        names: &mut Names<'a>,
        proto: &'a GraphProto,
    ) -> Result<(), LoadError> {
        let mut constants: Vec<(&'a str, Tensor)> = Vec::new();
        for initialiser in &proto.initializer {
            constants.push((&initialiser.name, self.reader.read(initialiser)?));
        }
        for initialiser in &proto.sparse_initializer {
            let name = initialiser.values.as_ref().map_or("", |values| &values.name);
            constants.push((name, self.reader.read_sparse(initialiser)?));
        }
        let initialised: HashSet<&str> = constants.iter().map(|(name, _)| *name).collect();
        for input in &proto.input {
            let id = define(graph, names, &input.name, "")?;
            declare(graph, names, input);
            let is_constant = initialised.contains(input.name.as_str());
            if !(is_constant && self.initialised_inputs_are_constants) {
                graph.add_input(id);
            }
        }
        for (name, tensor) in constants {
            let id = match names.get(name).copied().flatten() {
                Some(id) if graph.constant(id).is_none() => id,
                Some(_) => return Err(redefined(graph, name)),
                None => define(graph, names, name, "")?,
            };
            graph.value_mut(id).constant = Some(tensor);
        }
        Ok(())
    }

    /// Adds nodes to the graph. `bound` gives values that stand in for some of the nodes' outputs;
    /// those that no node writes are left in it.
    fn nodes(
        &mut self,
        graph: &mut Graph,
        names: &mut Names<'a>,
        mut bound: HashMap<&'a str, ValueId>,
        nodes: &'a [NodeProto],
        context: &Context<'a>,
    ) -> Result<HashMap<&'a str, ValueId>, LoadError> {
        for output in nodes.iter().flat_map(|node| &node.output).filter(|name| !name.is_empty()) {
            match bound.remove(output.as_str()) {
                Some(id) if !names.contains_key(output.as_str()) => {
                    names.insert(output, Some(id));
                }
                _ => {
                    define(graph, names, output, &context.prefix)?;
                }
            }
        }
        for node in nodes {
            let attributes = resolve(node, context);
            self.node(graph, names, node, &attributes, context).map_err(|error| match error {
                Failure::Load(error) => error,
                Failure::Node(problem) => LoadError::Node {
                    node: format!("{}{}", context.prefix, display_name(node)),
                    operator: node.op_type.clone(),
                    problem: Box::new(problem),
                },
            })?;
        }
        Ok(bound)
    }

    fn node(
        &mut self,
        graph: &mut Graph,
        names: &mut Names<'a>,
        node: &'a NodeProto,
        attributes: &[(&'a str, &'a AttributeProto)],
        context: &Context<'a>,
    ) -> Result<(), Failure> {
        let find = |name: &String| match name.as_str() {
            "" => Ok(None),
            name => names.get(name).copied().ok_or_else(|| undefined(graph, name)),
        };
        let mut inputs: Vec<Option<ValueId>> =
            node.input.iter().map(find).collect::<Result<_, _>>()?;
        let mut outputs: Vec<Option<ValueId>> =
            node.output.iter().map(find).collect::<Result<_, _>>()?;
        while outputs.last() == Some(&None) {
            outputs.pop();
        }
        if let Some(function) = self.functions.find(node) {
            return self.call(graph, function, &inputs, &outputs, attributes);
        }
        if is_constant(node) {
            let tensor = attribute::constant(attributes, &mut self.reader)?;
            if let Some(id) = outputs.first().copied().flatten() {
                graph.value_mut(id).constant = Some(tensor);
            }
            return Ok(());
        }

        if bodies(node).nth(MAX_BODIES).is_some() {
            let problem = format!("has more bodies than the limit of {MAX_BODIES}");
            return Err(NodeProblem::Other(problem).into());
        }
        let captured = capture(graph, names, node);
        inputs.extend(captured.iter().map(|value| value.id).filter(Option::is_some));
        let mut built = Attributes::new();
        for &(name, proto) in attributes {
            let value = if attribute::kind(proto) == attribute_type::GRAPH {
                Attribute::Graph(Arc::new(self.body(node, name, proto, context, &captured)?))
            } else {
                attribute::read(proto, &mut self.reader)?
            };
            built.insert(name, value);
        }
        let domain = standard(&node.domain);
        let source = NodeSource {
            domain,
            operator: &node.op_type,
            opset: context.opsets.version(domain)?,
            attributes: &built,
            input_count: inputs.len(),
            output_count: outputs.len(),
        };
        let operator = operators::build(&source)?;
        // A node of a function may be in another version than the one it would be written in.
        let is_writable = self.opsets.version(domain).ok() == Some(source.opset);
        let origin = is_writable.then(|| {
            let (domain, operator) = (domain.to_string(), node.op_type.clone());
            Arc::new(Origin { domain, operator, attributes: built })
        });
        let name = format!("{}{}", context.prefix, display_name(node));
        graph.add_node(Node { name, operator, inputs, outputs, origin });
        Ok(())
    }

    fn body(
        &mut self,
        node: &'a NodeProto,
        name: &str,
        proto: &'a AttributeProto,
        context: &Context<'a>,
        captured: &[Captured<'a>],
    ) -> Result<Graph, Failure> {
        let fail = |problem: &str| {
            Failure::Node(NodeProblem::Attribute {
                name: name.to_string(),
                problem: problem.to_string(),
            })
        };
        let body = proto.g.as_ref().ok_or_else(|| fail("the graph is missing"))?;
        // A body handed to a function belongs to the caller's names, which the function cannot see.
        if !node.attribute.as_ptr_range().contains(&std::ptr::from_ref(proto)) {
            return Err(fail("bodies cannot be handed to functions"));
        }
        self.nested(|builder| builder.graph(body, context, captured))?
            .map_err(|error| Failure::Node(NodeProblem::Body(Box::new(error))))
    }

    fn call(
        &mut self,
        graph: &mut Graph,
        function: &Function<'a>,
        inputs: &[Option<ValueId>],
        outputs: &[Option<ValueId>],
        attributes: &[(&'a str, &'a AttributeProto)],
    ) -> Result<(), Failure> {
        let Function { proto: function, inlined_bytes } = *function;
        let fail = |problem: String| Failure::Node(NodeProblem::Other(problem));
        if self.calls.iter().any(|open| std::ptr::eq(*open, function)) {
            return Err(fail(format!("function '{}' calls itself", function.name)));
        }
        if inputs.len() > function.input.len() || outputs.len() > function.output.len() {
            return Err(fail(format!(
                "function '{}' has {} inputs and {} outputs",
                function.name,
                function.input.len(),
                function.output.len()
            )));
        }
        self.inlined_bytes = self.inlined_bytes.saturating_add(inlined_bytes);
        if self.inlined_bytes > MAX_INLINED_BYTES {
            return Err(LoadError::Limit(format!(
                "the model's functions expand to more than {MAX_INLINED_BYTES} bytes"
            ))
            .into());
        }
        self.call_count += 1;
        let short: String = function.name.chars().take(32).collect();
        let defaults = function.attribute_proto.iter().map(|proto| (proto.name.as_str(), proto));
        let inner = Context {
            opsets: Rc::new(Opsets::read(&function.opset_import, Some(self.opsets.clone()))?),
            attributes: Rc::new(defaults.chain(attributes.iter().copied()).collect()),
            prefix: format!("{short}#{}/", self.call_count),
        };
        let given = inputs.iter().copied().chain(std::iter::repeat(None));
        let mut names: Names<'a> = function.input.iter().map(String::as_str).zip(given).collect();

        // A function that hands out an input, or one value twice, needs a copy for the caller's name.
        let mut bound: HashMap<&'a str, ValueId> = HashMap::new();
        let mut copies: Vec<(&'a str, ValueId)> = Vec::new();
        for (name, id) in function.output.iter().zip(outputs) {
            if let Some(id) = *id
                && (names.contains_key(name.as_str()) || bound.contains_key(name.as_str()))
            {
                copies.push((name, id));
            } else if let Some(id) = *id {
                bound.insert(name, id);
            }
        }
        self.calls.push(function);
        let unwritten = self
            .nested(|builder| builder.nodes(graph, &mut names, bound, &function.node, &inner))??;
        self.calls.pop();
        if let Some(name) = unwritten.keys().next() {
            return Err(undefined(graph, name).into());
        }
        for info in &function.value_info {
            declare(graph, &names, info);
        }
        for (name, output) in copies {
            let input = names.get(name).copied().flatten().ok_or_else(|| undefined(graph, name))?;
            graph.add_node(copy(input, output, inner.opsets.standard())?);
        }
        Ok(())
    }

    fn nested<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> Result<T, LoadError> {
        if self.nesting == MAX_NESTING {
            return Err(LoadError::Limit(format!(
                "bodies and function calls nest deeper than {MAX_NESTING}"
            )));
        }
        self.nesting += 1;
        let result = work(self);
        self.nesting -= 1;
        Ok(result)
    }
}

/// Something wrong with the node at hand, or an error that already says where it is.
enum Failure {
    Node(NodeProblem),
    Load(LoadError),
}

impl From<NodeProblem> for Failure {
    fn from(problem: NodeProblem) -> Self {
        Failure::Node(problem)
    }
}

impl From<OperatorError> for Failure {
    fn from(problem: OperatorError) -> Self {
        Failure::Node(problem.into())
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        Failure::Load(error)
    }
}

/// The node's attributes, with references to the function's attributes replaced by what they stand for.
fn resolve<'a>(node: &'a NodeProto, context: &Context<'a>) -> Vec<(&'a str, &'a AttributeProto)> {
    let value = |proto: &'a AttributeProto| match proto.ref_attr_name.as_str() {
        "" => Some(proto),
        name => context.attributes.get(name).copied(),
    };
    node.attribute.iter().filter_map(|proto| Some((proto.name.as_str(), value(proto)?))).collect()
}

/// What the bodies of a node take from this graph. Names that are nowhere defined are left to the body to report.
fn capture<'a>(graph: &Graph, names: &Names<'a>, node: &'a NodeProto) -> Vec<Captured<'a>> {
    let captured = |name: &'a str| {
        let id = *names.get(name)?;
        let declared = id.and_then(|id| {
            let value = graph.value(id);
            value.declared.clone().or_else(|| {
                value.constant.as_ref().map(|tensor| {
                    let known = |&size: &usize| weft_ir::Dimension::Known(size);
                    let dimensions = Some(tensor.shape().iter().map(known).collect());
                    TensorType { data_type: tensor.data_type(), dimensions }
                })
            })
        });
        Some(Captured { name, id, declared })
    };
    captured_names(bodies(node)).into_iter().filter_map(captured).collect()
}

fn define<'a>(
    graph: &mut Graph,
    names: &mut Names<'a>,
    name: &'a str,
    prefix: &str,
) -> Result<ValueId, LoadError> {
    if names.contains_key(name) {
        return Err(redefined(graph, name));
    }
    let id = graph.add_value(ValueInfo { name: format!("{prefix}{name}"), ..Default::default() });
    names.insert(name, Some(id));
    Ok(id)
}

fn declare(graph: &mut Graph, names: &Names<'_>, info: &ValueInfoProto) {
    let Some(id) = names.get(info.name.as_str()).copied().flatten() else { return };
    match info.r#type.as_ref() {
        Some(proto @ TypeProto { value: Some(TypeValue::Tensor(_)) }) => {
            let value = graph.value_mut(id);
            value.declared = value.declared.take().or_else(|| tensor_type(Some(proto)));
        }
        Some(proto @ TypeProto { value: Some(_) }) => {
            graph.declare_non_tensor(id, type_name(Some(proto)));
        }
        _ => {}
    }
}

fn copy(input: ValueId, output: ValueId, opset: i64) -> Result<Node, OperatorError> {
    let attributes = Attributes::new();
    let operator = operators::build(&NodeSource {
        domain: "",
        operator: "Identity",
        opset,
        attributes: &attributes,
        input_count: 1,
        output_count: 1,
    })?;
    Ok(Node {
        name: "copy".into(),
        operator,
        inputs: vec![Some(input)],
        outputs: vec![Some(output)],
        origin: Some(Arc::new(Origin {
            domain: String::new(),
            operator: "Identity".into(),
            attributes,
        })),
    })
}

fn undefined(graph: &Graph, name: &str) -> LoadError {
    let problem = Box::new(GraphError::Undefined(name.to_string()));
    LoadError::Graph { graph: graph.name.clone(), problem }
}

fn redefined(graph: &Graph, name: &str) -> LoadError {
    let problem = Box::new(GraphError::Redefined(name.to_string()));
    LoadError::Graph { graph: graph.name.clone(), problem }
}

#[cfg(test)]
mod tests;
