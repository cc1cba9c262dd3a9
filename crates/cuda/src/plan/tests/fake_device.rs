//! A device without a GPU: its kernels evaluate nodes by reference, on bytes in memory of its own.

use std::sync::Mutex;

use weft_device::DeviceError;
use weft_ir::{DataType, Inputs, OptimizedGraph, Tensor, Value};

use crate::launch::{Argument, Candidate, DeviceWeights, KernelSource, Launch, WeightMemory};
use crate::plan::host::HostValues;
use crate::plan::place::Place;
use crate::plan::site::{Selected, Selection, Site};
use crate::plan::steps::{DeviceStep, HostStep, Operand, PlannedLaunch, Stage};
use crate::plan::transfer::{decode, encode};
use crate::plan::{ExecutionPlan, OutputSource};
use crate::{Precision, Storage};

/// Scratch memory of each fake kernel, which it fills.
const WORKSPACE_BYTES: usize = 700;

/// Weights that can be looked up by address.
#[derive(Default)]
pub(super) struct FakeMemory(Mutex<Vec<Vec<u8>>>);

impl WeightMemory for FakeMemory {
    fn store(&self, bytes: &[u8]) -> Result<DeviceWeights, DeviceError> {
        let mut stored = self.0.lock().unwrap();
        stored.push(bytes.to_vec());
        let address = stored.len() as u64 - 1;
        Ok(DeviceWeights { address, size_bytes: bytes.len(), memory: Box::new(()) })
    }
}

/// Selects a fake kernel for the nodes that `is_on_device` picks by their index, and whose values can lie there.
pub(super) fn select(site: &Site<'_>, is_on_device: &dyn Fn(usize) -> bool) -> Selection {
    let nodes = site.graph.graph().nodes();
    let index = nodes.iter().position(|node| std::ptr::eq(node, site.node)).unwrap();
    if !is_on_device(index) {
        return Ok(None);
    }
    let inputs: Vec<usize> =
        (0..site.node.inputs.len()).filter(|&input| site.has_input(input)).collect();
    // Every second node takes inputs of the graph as they are given.
    let is_given = |input: &usize| index % 2 == 1 && site.given_storage(*input).is_some();
    let (given, reads): (Vec<usize>, Vec<usize>) = inputs.iter().partition(|input| is_given(input));
    let argument = |&input: &usize| match given.contains(&input) {
        true => Argument::Given(input),
        false => Argument::Input(input),
    };
    let mut arguments: Vec<Argument> = inputs.iter().map(argument).collect();
    let outputs = site.node.outputs.iter().enumerate();
    arguments
        .extend(outputs.filter(|(_, id)| id.is_some()).map(|(output, _)| Argument::Output(output)));
    arguments.push(Argument::Workspace { offset_bytes: 0 });
    let defines = vec![("NODE", index.to_string())];
    let launch = Launch {
        source: KernelSource::new("fake.cu", "", "fake", defines),
        grid: [1; 3],
        threads: 1,
        shared_bytes: 0,
        cluster: [1; 3],
        arguments,
    };
    let candidate = Candidate::new("fake", vec![launch], WORKSPACE_BYTES);
    Ok(Some(Selected::only(candidate, reads)))
}

/// One run of a plan.
pub(super) struct FakeRun<'a> {
    graph: &'a OptimizedGraph,
    plan: &'a ExecutionPlan,
    precision: Precision,
    weights: &'a FakeMemory,
    host: HostValues,
    arena: Vec<u8>,
    inputs: Vec<Vec<u8>>,
    outputs: Vec<Vec<u8>>,
}

impl<'a> FakeRun<'a> {
    /// Memory that holds nonsense, and the inputs copied into place.
    pub(super) fn new(
        graph: &'a OptimizedGraph,
        plan: &'a ExecutionPlan,
        precision: Precision,
        weights: &'a FakeMemory,
        given: Vec<Value>,
    ) -> Self {
        let upload = |(input, value): (&crate::plan::PlannedInput, &Value)| match &input.uploaded {
            Some(uploaded) => {
                encode(value.tensor().unwrap(), uploaded.storage).unwrap().into_owned()
            }
            None => Vec::new(),
        };
        let inputs = plan.inputs.iter().zip(&given).map(upload).collect();
        let outputs =
            plan.output_buffers.iter().map(|buffer| vec![0xFF; buffer.size_bytes()]).collect();
        let arena = vec![0xFF; plan.report.arena_bytes];
        let host = HostValues::new(given, plan.host_slot_count);
        Self { graph, plan, precision, weights, host, arena, inputs, outputs }
    }

    pub(super) fn run(mut self) -> Vec<Value> {
        for stage in &self.plan.stages {
            match stage {
                Stage::Device(steps) => steps.iter().for_each(|step| self.device_step(step)),
                Stage::Host(step) => self.host_step(step),
            }
        }
        let output = |output: &OutputSource| match output {
            OutputSource::Device { buffer, shape } => {
                let value = &self.plan.output_buffers[*buffer];
                let bytes = &self.outputs[*buffer];
                decode(bytes, value.storage, value.data_type, shape.clone()).unwrap().into()
            }
            OutputSource::Host(operand) => self.host.get(operand).unwrap(),
        };
        self.plan.outputs.iter().map(output).collect()
    }

    fn device_step(&mut self, step: &DeviceStep) {
        for launch in &step.launches {
            match launch.launch.source.entry {
                "convert" => self.convert(launch),
                _ => self.evaluate(launch),
            }
        }
    }

    fn evaluate(&mut self, launch: &PlannedLaunch) {
        let index: usize = launch.launch.source.defines[0].1.parse().unwrap();
        let node = &self.graph.graph().nodes()[index];
        let mut places = launch.operands.iter().map(|operand| match operand {
            Operand::Address(place) => place,
            other => panic!("{other:?}"),
        });
        let (graph, precision) = (self.graph, self.precision);
        let describe = |id| {
            let fact = graph.fact(id);
            let data_type = fact.data_type.unwrap();
            (data_type, precision.storage_of(data_type).unwrap(), fact.shape().unwrap())
        };
        let mut values: Vec<Option<Value>> = Vec::new();
        for id in &node.inputs {
            values.push(id.map(|id| {
                let (data_type, stored, shape) = describe(id);
                let place = places.next().unwrap();
                let storage = match place {
                    Place::Input(_) => Storage::exact(data_type).unwrap(),
                    _ => stored,
                };
                let size = shape.iter().product::<usize>() * storage.size_bytes();
                let bytes = self.read(place, size);
                decode(&bytes, storage, data_type, shape).unwrap().into()
            }));
        }
        let results = node.operator.evaluate(&Inputs::new(&values, node.outputs.len())).unwrap();
        let targets: Vec<&Place> = places.collect();
        let (workspace, targets) = targets.split_last().unwrap();
        self.write(workspace, &[0xAB; WORKSPACE_BYTES]);
        let asked = node
            .outputs
            .iter()
            .zip(results)
            .filter_map(|(id, result)| Some((id.as_ref()?, result)));
        for ((&id, result), place) in asked.zip(targets) {
            let bytes = encode(result.tensor().unwrap(), describe(id).1).unwrap().into_owned();
            self.write(place, &bytes);
        }
    }

    fn convert(&mut self, launch: &PlannedLaunch) {
        let storage = |define: usize| {
            let name = &launch.launch.source.defines[define].1;
            Storage::ALL.into_iter().find(|storage| storage.cuda_name() == *name).unwrap()
        };
        let [Operand::Address(from), Operand::Address(to), Operand::Bytes(count)] =
            &launch.operands[..]
        else {
            panic!("{:?}", launch.operands)
        };
        let count = u32::from_ne_bytes(count[..].try_into().unwrap()) as usize;
        let bytes = self.read(from, count * storage(0).size_bytes());
        let tensor: Tensor = decode(&bytes, storage(0), DataType::F32, vec![count]).unwrap();
        let converted = encode(&tensor, storage(1)).unwrap().into_owned();
        self.write(to, &converted);
    }

    fn host_step(&mut self, step: &HostStep) {
        match step {
            HostStep::Evaluate { operator, inputs, outputs } => {
                self.host.evaluate(&**operator, inputs, outputs).unwrap();
            }
            HostStep::Download { from, value, slot } => {
                let bytes = self.read(from, value.size_bytes());
                let tensor = decode(&bytes, value.storage, value.data_type, value.shape.clone());
                self.host.put(*slot, tensor.unwrap().into());
            }
            HostStep::Upload { from, to, value } => {
                let given = self.host.get(from).unwrap();
                let bytes = encode(given.tensor().unwrap(), value.storage).unwrap().into_owned();
                assert_eq!(bytes.len(), value.size_bytes());
                self.write(to, &bytes);
            }
        }
    }

    fn read(&self, place: &Place, size: usize) -> Vec<u8> {
        match place {
            Place::Arena { offset_bytes } => self.arena[*offset_bytes..][..size].to_vec(),
            Place::Input(index) => self.inputs[*index][..size].to_vec(),
            Place::Output(index) => self.outputs[*index][..size].to_vec(),
            Place::Weights(weights) => {
                self.weights.0.lock().unwrap()[weights.address as usize][..size].to_vec()
            }
            other => panic!("nothing is read from {other:?}"),
        }
    }

    fn write(&mut self, place: &Place, bytes: &[u8]) {
        let target = match place {
            Place::Arena { offset_bytes } => &mut self.arena[*offset_bytes..],
            Place::Output(index) => &mut self.outputs[*index][..],
            other => panic!("nothing is written to {other:?}"),
        };
        target[..bytes.len()].copy_from_slice(bytes);
    }
}
