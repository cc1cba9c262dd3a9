//! From an optimised graph to an execution plan: kernels are selected, values placed, launches given their operands.

use std::collections::HashMap;

use weft_device::{DeviceError, ExecutionReport, StepReport};
use weft_ir::{OptimizedGraph, ValueId};

use super::chains;
use super::operands::{OperandBinder, StepPlaces};
use super::place::Place;
use super::placement::{Placement, place};
use super::pooled;
use super::schedule::{Action, Schedule, schedule};
use super::select::select;
use super::siblings;
use super::steps::{DeviceStep, DeviceValue, HostOperand, HostSource, HostStep, Stage};
use super::target::Target;
use super::task::{Selector, Task, Tasks, Work, tasks};
use super::traffic::dram_bytes;
use super::{ExecutionPlan, OutputSource, PlannedInput};
use crate::Storage;
use crate::kernels::convert::convert_launch;
use crate::launch::{Argument, Candidate};

/// The kernel's name of a step that the host evaluates.
const REFERENCE: &str = "reference";

/// Builds the plan.
pub(crate) fn build(
    graph: &OptimizedGraph,
    target: &Target<'_>,
) -> Result<ExecutionPlan, DeviceError> {
    let groups = chains::group(graph, target.precision);
    let groups = pooled::join(graph, siblings::join(graph, groups));
    build_with(graph, target, &groups, &select)
}

/// Builds the plan with the nodes in groups, and kernels of the selector's choice.
pub(crate) fn build_with(
    graph: &OptimizedGraph,
    target: &Target<'_>,
    groups: &[Vec<usize>],
    selector: &Selector<'_>,
) -> Result<ExecutionPlan, DeviceError> {
    let tasks = tasks(graph, target, groups, selector)?;
    let schedule = schedule(graph, &tasks, target.precision);
    let placement = place(graph, &tasks, &schedule, target)?;
    let mut builder = Builder {
        graph,
        target,
        tasks: &tasks,
        schedule: &schedule,
        placement,
        binder: OperandBinder::default(),
        host_slots: HashMap::new(),
        report: ExecutionReport { rewrites: graph.applied().to_vec(), ..Default::default() },
        stages: Vec::new(),
    };
    for step in 0..schedule.actions.len() {
        builder.add(step);
    }
    Ok(builder.finish())
}

struct Builder<'a> {
    graph: &'a OptimizedGraph,
    target: &'a Target<'a>,
    tasks: &'a Tasks,
    schedule: &'a Schedule,
    placement: Placement,
    binder: OperandBinder,
    /// Where the host keeps the values that it produces or downloads.
    host_slots: HashMap<ValueId, usize>,
    report: ExecutionReport,
    stages: Vec<Stage>,
}

impl Builder<'_> {
    /// Adds the step that one action of the schedule becomes.
    fn add(&mut self, step: usize) {
        match self.schedule.actions[step] {
            Action::Run(task) => self.add_task(step, &self.tasks.tasks[task]),
            Action::ConvertInput { value, input } => {
                let to = self.device_value(value).storage;
                let from = self.device_value(value).given().storage;
                let places = (Place::Input(input), self.placement.of(value));
                self.add_conversion(step, value, (from, to), places);
            }
            Action::ConvertOutput { value, buffer } => {
                let from = self.device_value(value).storage;
                let to = self.device_value(value).given().storage;
                let places = (self.placement.of(value), Place::Output(buffer));
                self.add_conversion(step, value, (from, to), places);
            }
            Action::Download(value) => {
                let from = self.placement.of(value);
                let slot = self.new_slot(value);
                let copy = HostStep::Download { from, value: self.device_value(value), slot };
                self.add_copy(value, "download", copy);
            }
            Action::Upload(value) => {
                let to = self.placement.of(value);
                let from = self.host_operand(value);
                let copy = HostStep::Upload { from, to, value: self.device_value(value) };
                self.add_copy(value, "upload", copy);
            }
        }
    }

    fn add_task(&mut self, step: usize, task: &Task) {
        let kernel = match &task.work {
            Work::Device { candidate, reads, given } => {
                let place = |id: ValueId| self.placement.of(self.tasks.views.root(id));
                let input = |(index, id): (usize, &Option<ValueId>)| match *id {
                    Some(id) if given.contains(&index) => self.input(id).map(Place::Input),
                    Some(id) if reads.contains(&index) => Some(place(id)),
                    _ => None,
                };
                let places = StepPlaces {
                    inputs: task.inputs.iter().enumerate().map(input).collect(),
                    outputs: task.outputs.iter().map(|id| id.map(place)).collect(),
                    workspace_bytes: self.placement.workspace(step),
                    step,
                };
                self.add_work(candidate.clone(), &places);
                candidate.name.clone()
            }
            Work::Host(operator) => {
                let inputs =
                    task.inputs.iter().map(|id| id.map(|id| self.host_operand(id))).collect();
                let outputs = task.outputs.iter().map(|id| id.map(|id| self.new_slot(id)));
                let outputs = outputs.collect();
                let operator = operator.clone();
                self.stages.push(Stage::Host(HostStep::Evaluate { operator, inputs, outputs }));
                REFERENCE.into()
            }
        };
        self.report.flops += task.flops;
        self.report.steps.push(StepReport {
            node: task.node.clone(),
            operator: task.operator.clone(),
            kernel,
            flops: task.flops,
        });
    }

    fn add_conversion(
        &mut self,
        step: usize,
        value: ValueId,
        (from, to): (Storage, Storage),
        (source, destination): (Place, Place),
    ) {
        let places = StepPlaces {
            inputs: vec![Some(source)],
            outputs: vec![Some(destination)],
            workspace_bytes: 0,
            step,
        };
        let count = self.device_value(value).element_count();
        let convert = || convert_launch(from, to, count, Argument::Input(0), Argument::Output(0));
        let launches = (count > 0).then(convert).into_iter().collect();
        self.add_work(Candidate::new("convert", launches, 0), &places);
        self.report_movement(value, "Convert", "convert");
    }

    fn add_copy(&mut self, value: ValueId, kernel: &str, copy: HostStep) {
        self.stages.push(Stage::Host(copy));
        self.report_movement(value, "Copy", kernel);
    }

    fn report_movement(&mut self, value: ValueId, operator: &str, kernel: &str) {
        self.report.steps.push(StepReport {
            node: self.graph.graph().value(value).name.clone(),
            operator: operator.into(),
            kernel: kernel.into(),
            flops: 0,
        });
    }

    /// Adds a device step, to the stage before it where that is the device's too.
    fn add_work(&mut self, work: Candidate, places: &StepPlaces) {
        let Candidate { launches, library_call, .. } = work;
        let launches =
            launches.into_iter().map(|launch| self.binder.bind(launch, places)).collect();
        let library_call = library_call.map(|call| self.binder.bind_call(&call, places));
        let step = DeviceStep { launches, library_call };
        match self.stages.last_mut() {
            Some(Stage::Device(steps)) => steps.push(step),
            _ => self.stages.push(Stage::Device(vec![step])),
        }
    }

    fn new_slot(&mut self, id: ValueId) -> usize {
        let slot = self.host_slots.len();
        self.host_slots.insert(id, slot);
        slot
    }

    /// A value as the host reads it.
    fn host_operand(&self, id: ValueId) -> HostOperand {
        let graph = self.graph.graph();
        let root = self.tasks.views.root(id);
        let source = match (graph.constant(root), self.host_slots.get(&root)) {
            (Some(tensor), _) => HostSource::Constant(tensor.clone()),
            (None, Some(&slot)) => HostSource::Slot(slot),
            (None, None) => {
                HostSource::Input(self.input(root).expect("what the host reads is on the host"))
            }
        };
        let shape = if root == id { None } else { self.graph.fact(id).shape() };
        HostOperand { source, shape }
    }

    /// Which of the caller's inputs a value is.
    fn input(&self, id: ValueId) -> Option<usize> {
        self.graph.graph().required_inputs().position(|input| input == id)
    }

    fn device_value(&self, id: ValueId) -> DeviceValue {
        let value = self.target.device_value(self.graph, id);
        value.expect("what the device touches has a shape and a storage")
    }

    fn finish(mut self) -> ExecutionPlan {
        let graph = self.graph.graph();
        let input = |(index, id): (usize, ValueId)| PlannedInput {
            name: graph.value(id).name.clone(),
            fact: self.graph.fact(id).clone(),
            uploaded: self
                .schedule
                .uploaded_inputs
                .contains(&index)
                .then(|| self.device_value(id).given()),
        };
        let inputs = graph.required_inputs().enumerate().map(input).collect();
        let output = |(&id, buffer): (&ValueId, &Option<usize>)| match buffer {
            Some(buffer) => {
                OutputSource::Device { buffer: *buffer, shape: self.device_value(id).shape }
            }
            None => OutputSource::Host(self.host_operand(id)),
        };
        let outputs = graph.outputs().iter().zip(&self.schedule.outputs.sources).map(output);
        let outputs = outputs.collect();
        let buffers = &self.schedule.outputs.buffers;
        let output_buffers = buffers.iter().map(|&id| self.device_value(id).given()).collect();
        self.report.arena_bytes = self.placement.arena_bytes;
        let mut plan = ExecutionPlan {
            stages: self.stages,
            inputs,
            outputs,
            output_buffers,
            host_slot_count: self.host_slots.len(),
            counter_count: self.binder.counter_count,
            dram_bytes: 0,
            report: self.report,
            values: self.placement.in_arena,
        };
        plan.report.weight_bytes = plan.weights().iter().map(|weights| weights.size_bytes).sum();
        plan.dram_bytes = dram_bytes(plan.report.weight_bytes, self.tasks, self.graph, self.target);
        plan
    }
}
