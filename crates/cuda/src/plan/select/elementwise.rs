//! Elementwise operators, alone or in chains.

use std::collections::HashMap;

use weft_device::DeviceError;
use weft_ir::broadcast::broadcast_shapes;
use weft_ir::operators::elementwise::{Binary, BinaryFunction, Cast, Dropout};
use weft_ir::operators::fused::ScaleShift;
use weft_ir::{Node, OptimizedGraph, ValueId};

use super::super::site::{Selected, Selection, Site};
use crate::kernels::elementwise::{Chain, ChainInput, Number, Term, expression};
use crate::launch::{Argument, Candidate};
use crate::{Precision, Storage};

/// The most inputs that a kernel takes.
const MAX_INPUTS: usize = 64;

/// How a chain is computed. [`Argument::Input`] numbers its `inputs`.
pub(crate) struct ChainSelected {
    /// What it reads, each once.
    pub(crate) inputs: Vec<ValueId>,
    /// What it writes: the last node's value.
    pub(crate) output: ValueId,
    /// At least one.
    pub(crate) candidate: Candidate,
}

/// True where a node can be part of a chain.
pub(crate) fn has_code(graph: &OptimizedGraph, node: &Node, precision: Precision) -> bool {
    let term = |id: ValueId| {
        let number = Number::of(resident(graph, precision, id)?.1);
        Some(Term { text: "x".into(), number })
    };
    code(graph, node, precision, |id, _| term(id)).is_some()
}

/// The kernel of one elementwise node.
pub(super) fn select(site: &Site<'_>) -> Selection {
    let Some(chain) = select_chain(&[*site])? else { return Ok(None) };
    let place = |id: ValueId| site.node.inputs.iter().position(|&input| input == Some(id));
    let Some(reads) = chain.inputs.iter().map(|&id| place(id)).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let mut candidate = chain.candidate;
    for launch in &mut candidate.launches {
        for argument in &mut launch.arguments {
            if let Argument::Input(index) = argument {
                *index = reads[*index];
            }
        }
    }
    Ok(Some(Selected::only(candidate, reads)))
}

/// The kernel of a chain: nodes in an order in which they can run, of whose values only the last is needed outside.
/// `None` where one of them has no code.
pub(crate) fn select_chain(sites: &[Site<'_>]) -> Result<Option<ChainSelected>, DeviceError> {
    let Some(output) = sites.last().and_then(|site| site.node.output()) else { return Ok(None) };
    let mut builder = ChainBuilder::default();
    for site in sites {
        if builder.add(site)?.is_none() {
            return Ok(None);
        }
    }
    Ok(builder.finish(sites, output))
}

/// The shape and storage of a value that can lie in device memory.
fn resident(
    graph: &OptimizedGraph,
    precision: Precision,
    id: ValueId,
) -> Option<(Vec<usize>, Storage)> {
    let fact = graph.fact(id);
    Some((fact.shape()?, precision.storage_of(fact.data_type?)?))
}

/// The code of a node, whose operands `term` names, given the value and its index in the node.
fn code(
    graph: &OptimizedGraph,
    node: &Node,
    precision: Precision,
    mut term: impl FnMut(ValueId, usize) -> Option<Term>,
) -> Option<(String, Number)> {
    let is_only = node.outputs.iter().skip(1).all(Option::is_none);
    let (shape, storage) = resident(graph, precision, node.output().filter(|_| is_only)?)?;
    let read = operands(node);
    if !agree(graph, node, read, &shape) {
        return None;
    }
    let mut terms = Vec::with_capacity(read.len());
    for (index, id) in read.iter().enumerate() {
        terms.push(match id {
            None => None,
            Some(id) => match literal(graph, precision, *id) {
                Some(literal) => Some(literal),
                None => Some(term(*id, index)?),
            },
        });
    }
    if let Some(scale_shift) = node.is::<ScaleShift>() {
        let channels = shape.get(scale_shift.channel_axis)?;
        let are_constant = [1, 2].iter().all(|&index| {
            let tensor = node.input(index).and_then(|id| graph.graph().constant(id));
            tensor.is_some_and(|tensor| tensor.shape() == [*channels])
        });
        if !are_constant {
            return None;
        }
    }
    let result = Number::of(storage);
    Some((expression(&*node.operator, &terms, result)?, result))
}

/// The inputs whose elements a node reads.
fn operands(node: &Node) -> &[Option<ValueId>] {
    let reads_first_alone = node.is::<Cast>().is_some() || node.is::<Dropout>().is_some();
    if reads_first_alone { &node.inputs[..node.inputs.len().min(1)] } else { &node.inputs }
}

/// True where the operands broadcast to the output's shape and are floats of one type, as operators ask.
fn agree(graph: &OptimizedGraph, node: &Node, read: &[Option<ValueId>], shape: &[usize]) -> bool {
    let is_channel = |index: usize| node.is::<ScaleShift>().is_some() && index > 0;
    let fits = |(index, id): (usize, &Option<ValueId>)| {
        let Some(own) = id.and_then(|id| graph.fact(id).shape()) else { return true };
        let is_single = own.iter().product::<usize>() == 1;
        let broadcasts = || broadcast_shapes(&[&own, shape]).is_ok_and(|all| all == shape);
        is_single || is_channel(index) || broadcasts()
    };
    let types = read.iter().flatten().filter_map(|&id| graph.fact(id).data_type);
    let mut floats = types.filter(|data_type| data_type.is_float());
    let first = floats.next();
    let is_power = node.is::<Binary>().is_some_and(|node| node.function == BinaryFunction::Pow);
    let is_one_type = is_power || floats.all(|data_type| Some(data_type) == first);
    is_one_type && read.iter().enumerate().all(fits)
}

/// A constant of one element.
fn literal(graph: &OptimizedGraph, precision: Precision, id: ValueId) -> Option<Term> {
    let tensor = graph.graph().constant(id)?;
    let number = Number::of(precision.storage_of(tensor.data_type())?);
    Some(Term { text: number.literal(tensor)?, number })
}

/// A chain that is put together node by node.
#[derive(Default)]
struct ChainBuilder {
    /// The inputs of the kernel.
    inputs: Vec<ChainInput>,
    /// Those of them that the graph computes.
    values: Vec<ValueId>,
    /// The names of what is known so far.
    terms: HashMap<ValueId, Term>,
    statements: Vec<String>,
}

impl ChainBuilder {
    /// Adds a node; `None` where it has no code.
    fn add(&mut self, site: &Site<'_>) -> Result<Option<()>, DeviceError> {
        let mut per_channel = HashMap::new();
        if let Some(operator) = site.operator::<ScaleShift>() {
            for index in [1, 2] {
                let Some(term) = self.per_channel(site, operator, index)? else { return Ok(None) };
                per_channel.insert(index, term);
            }
        }
        let term = |id, index| match per_channel.remove(&index) {
            Some(term) => Some(term),
            None => self.term(site, id),
        };
        let coded = code(site.graph, site.node, site.precision, term);
        let (Some((text, number)), Some(output)) = (coded, site.node.output()) else {
            return Ok(None);
        };
        let name = format!("b{}", self.statements.len());
        self.statements.push(format!("{} {name} = {text};", number.cuda_name()));
        self.terms.insert(output, Term { text: name, number });
        Ok(Some(()))
    }

    /// The name of a value, which becomes an input where no node of the chain computes it.
    fn term(&mut self, site: &Site<'_>, id: ValueId) -> Option<Term> {
        if let Some(term) = self.terms.get(&id) {
            return Some(term.clone());
        }
        let (shape, storage) = resident(site.graph, site.precision, id)?;
        let argument = Argument::Input(self.values.len());
        self.values.push(id);
        let term = self.input(ChainInput { storage, shape, argument });
        self.terms.insert(id, term.clone());
        Some(term)
    }

    /// A scale or shift, which keeps its full precision.
    fn per_channel(
        &mut self,
        site: &Site<'_>,
        operator: &ScaleShift,
        index: usize,
    ) -> Result<Option<Term>, DeviceError> {
        let Some(tensor) = site.f32_constant(index) else { return Ok(None) };
        let Some(output) = site.float_output() else { return Ok(None) };
        let bytes = |elements: &[f32]| bytemuck::cast_slice(elements).to_vec();
        let weights = site.weights.get_or_make(tensor, "f32".into(), bytes)?;
        let mut shape = vec![1; output.len().saturating_sub(operator.channel_axis)];
        let Some(first) = shape.first_mut() else { return Ok(None) };
        *first = tensor.len();
        let argument = Argument::Weights(weights);
        Ok(Some(self.input(ChainInput { storage: Storage::F32, shape, argument })))
    }

    fn input(&mut self, input: ChainInput) -> Term {
        let text = format!("a{}", self.inputs.len());
        let number = Number::of(input.storage);
        self.inputs.push(input);
        Term { text, number }
    }

    fn finish(self, sites: &[Site<'_>], output: ValueId) -> Option<ChainSelected> {
        let last = sites.last()?;
        let (shape, storage) = resident(last.graph, last.precision, output)?;
        if self.inputs.is_empty() || self.inputs.len() > MAX_INPUTS {
            return None;
        }
        let result = self.terms.get(&output)?.text.clone();
        let chain = Chain {
            inputs: self.inputs,
            statements: self.statements,
            result,
            output: storage,
            shape,
        };
        let name = match sites {
            [_] => "elementwise".to_string(),
            _ => format!("elementwise x{}", sites.len()),
        };
        let launches = chain.launch().into_iter().collect();
        let candidate = Candidate::new(name, launches, 0);
        Some(ChainSelected { inputs: self.values, output, candidate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choosing::Choosing;
    use crate::library_call::LibrarySet;
    use crate::plan::chains;
    use crate::plan::select::testing::{OneNode, Operand, given};
    use crate::{Chip, NoMemory, WeightStore};
    use std::sync::Arc;
    use weft_ir::{Attributes, DataType, Tensor};
    use weft_zoo::{ZooOptions, build, entries, sample_inputs};

    fn generated(operator: &str, operands: Vec<Operand>) -> Option<(String, Vec<usize>)> {
        let node = OneNode::new(operator, operands, Attributes::new());
        let selected = select(&node.site(Precision::F16)).unwrap()?;
        let code = selected.candidates[0].launches[0].source.generated.clone();
        Some((code, selected.reads))
    }

    #[test]
    fn scalars_are_written_into_the_code() {
        let half = Operand::Constant(Tensor::scalar(0.5f32));
        let (code, reads) = generated("Sub", vec![half, given(&[4, 8])]).unwrap();
        assert!(code.contains("float b0 = 0.5f - a0;"), "{code}");
        assert_eq!(reads, [1]);
    }

    #[test]
    fn a_value_that_is_read_twice_is_one_input() {
        let mut builder = weft_ir::GraphBuilder::new("square", 18);
        let x = builder.input("x", DataType::F32, &[8]);
        let y = builder.node("Mul", &[x, x], Attributes::new());
        builder.output("y", y);
        let graph = builder.finish().unwrap().specialise_plainly(&[vec![8]]).unwrap();
        let weights = WeightStore::new(Arc::new(NoMemory));
        let node = &graph.graph().nodes()[0];
        let (chip, precision) = (Chip::H200, Precision::F16);
        let site = Site {
            node,
            graph: &graph,
            weights: &weights,
            chip,
            precision,
            libraries: LibrarySet::default().into(),
            choosing: Choosing::Ranked,
        };
        let selected = select(&site).unwrap().unwrap();
        assert!(selected.candidates[0].launches[0].source.generated.contains("= a0 * a0;"));
        assert_eq!(selected.reads, [0]);
    }

    #[test]
    fn types_that_the_reference_refuses_are_left_to_it() {
        let halves = || Operand::Given(DataType::F16, vec![8]);
        assert!(generated("Pow", vec![given(&[8]), halves()]).is_some());
        let sizes = Operand::Given(DataType::F64, vec![8]);
        assert!(generated("Exp", vec![sizes]).is_none());
        let mut node = OneNode::new("Add", vec![given(&[8]), given(&[8])], Attributes::new());
        assert!(select(&node.site(Precision::F16)).unwrap().is_some());
        node = OneNode::new("Add", vec![given(&[8]), halves()], Attributes::new());
        assert!(select(&node.site(Precision::F16)).unwrap().is_none());
    }

    #[test]
    fn every_chain_of_the_zoo_has_code() {
        let mut chain_count = 0;
        for entry in entries().filter(|entry| entry.name.starts_with("tiny_")) {
            let options = ZooOptions::default();
            let model = build(entry.name, &options).unwrap();
            let inputs = sample_inputs(entry, &options, 1, 8).unwrap();
            let shapes: Vec<_> = inputs.iter().map(|input| input.shape().to_vec()).collect();
            let graph = model.specialise(&shapes).unwrap();
            let weights = WeightStore::new(Arc::new(NoMemory));
            let (chip, precision) = (Chip::H200, Precision::F16);
            for group in chains::group(&graph, precision).iter().filter(|group| group.len() > 1) {
                let nodes = graph.graph().nodes();
                let site = |&index: &usize| Site {
                    node: &nodes[index],
                    graph: &graph,
                    weights: &weights,
                    chip,
                    precision,
                    libraries: LibrarySet::default().into(),
                    choosing: Choosing::Ranked,
                };
                let sites: Vec<Site<'_>> = group.iter().map(site).collect();
                let chain = select_chain(&sites).unwrap();
                let chain = chain.unwrap_or_else(|| panic!("{} {group:?}", entry.name));
                assert_eq!(Some(chain.output), sites.last().and_then(|site| site.node.output()));
                chain_count += 1;
            }
        }
        assert!(chain_count > 0);
    }
}
