//! Sessions that are tenants of a device that serves.

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weft_device::{
    Bench, Device, DeviceDescription, DeviceError, Executable, ExecutionReport, KernelChoices,
    LoadedModel, Partition, Platform, Trial, TunableDevice, TunableOperator, UnitSet,
};
use weft_ir::{Graph, GraphBuilder, Value};
use weft_tuner::cost_model::TrainingRows;
use weft_tuner::session::{
    Assignment, Choice, Observer, Progress, Stop, Task, TrialReport, TuneError, tune,
};
use weft_tuner::tenant::{HostDevice, TenantDevice, TrialModel, Turns};

use crate::device::{FakeDevice, FakeOperator};
use crate::{chosen, exhaustive, run};

/// What was asked of a device that serves: its units have four cores each.
#[derive(Default)]
struct Asked {
    /// The units of each bench, and whether it is in the background.
    benches: Mutex<Vec<(UnitSet, bool)>>,
    /// Models that the device itself prepared.
    prepared: Mutex<Vec<String>>,
}

/// A device that serves, and can be tuned.
struct Serving {
    tunable: FakeDevice,
    asked: Arc<Asked>,
}

impl Device for Serving {
    fn description(&self) -> DeviceDescription {
        DeviceDescription {
            kind: "fake",
            name: "fake".into(),
            unit_count: 4,
            unit: "four cores".into(),
            instruction_set: String::new(),
            memory_bytes: None,
            peak_gflops_per_unit: None,
        }
    }

    fn load(&self, name: &str, graph: &Graph) -> Result<Arc<dyn LoadedModel>, DeviceError> {
        Ok(Arc::new(Plain { name: name.into(), graph: graph.clone() }))
    }

    fn partition(&self, units: &UnitSet) -> Result<Arc<dyn Partition>, DeviceError> {
        Ok(Arc::new(PlainPartition { units: units.clone(), asked: self.asked.clone() }))
    }

    fn background_partition(
        &self,
        units: &UnitSet,
    ) -> Option<Result<Arc<dyn Partition>, DeviceError>> {
        Some(self.partition(units))
    }
}

impl TunableDevice for Serving {
    fn platform(&self) -> Platform {
        self.tunable.platform()
    }

    fn size(&self) -> usize {
        self.tunable.size()
    }

    fn size_of(&self, units: &UnitSet) -> usize {
        self.tunable.size_of(units)
    }

    fn disjoint_partitions(&self, _size: usize) -> Vec<UnitSet> {
        panic!("a tenant has the partitions that it is given")
    }

    fn screening_size(&self, _size: usize) -> usize {
        1
    }

    fn operators(
        &self,
        _model: &dyn LoadedModel,
        _shapes: &[Vec<usize>],
        _size: usize,
    ) -> Result<Vec<Arc<dyn TunableOperator>>, DeviceError> {
        Ok(Vec::new())
    }

    fn bench(&self, units: &UnitSet) -> Result<Box<dyn Bench>, DeviceError> {
        self.asked.benches.lock().unwrap().push((units.clone(), false));
        self.tunable.bench(units)
    }

    fn background_bench(&self, units: &UnitSet) -> Option<Result<Box<dyn Bench>, DeviceError>> {
        self.asked.benches.lock().unwrap().push((units.clone(), true));
        Some(self.tunable.bench(units))
    }

    fn use_choices(&self, _choices: Arc<dyn KernelChoices>) {}
}

struct Plain {
    name: String,
    graph: Graph,
}

impl LoadedModel for Plain {
    fn name(&self) -> &str {
        &self.name
    }

    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct PlainPartition {
    units: UnitSet,
    asked: Arc<Asked>,
}

impl Partition for PlainPartition {
    fn units(&self) -> &UnitSet {
        &self.units
    }

    fn prepare(
        &self,
        model: &dyn LoadedModel,
        _shapes: &[Vec<usize>],
    ) -> Result<Box<dyn Executable>, DeviceError> {
        self.asked.prepared.lock().unwrap().push(model.name().into());
        Ok(Box::new(Echo(ExecutionReport::default())))
    }
}

struct Echo(ExecutionReport);

impl Executable for Echo {
    fn run(&self, inputs: &[Value]) -> Result<Vec<Value>, DeviceError> {
        Ok(inputs.to_vec())
    }

    fn time_steps(&self, _inputs: &[Value]) -> Result<Vec<Duration>, DeviceError> {
        Ok(Vec::new())
    }

    fn report(&self) -> &ExecutionReport {
        &self.0
    }
}

/// Gives turns on some partitions, one after another, until it stops.
struct InTurn {
    executables: Vec<Box<dyn Executable>>,
    given: AtomicUsize,
    stops_after: usize,
}

impl Turns for InTurn {
    fn take(&self, inputs: Vec<Value>) -> Result<(), DeviceError> {
        let turn = self.given.fetch_add(1, Ordering::Relaxed);
        if turn >= self.stops_after {
            return Err(DeviceError::Failed("nobody serves any more".into()));
        }
        let outputs = self.executables[turn % self.executables.len()].run(&inputs)?;
        assert_eq!(outputs, inputs, "a request gets its number back");
        Ok(())
    }
}

/// A tenant for trials on four cores, on partitions of these units.
struct Tenancy {
    host: HostDevice,
    serving: Arc<Serving>,
    model: Arc<TrialModel>,
    turns: Arc<InTurn>,
}

impl Tenancy {
    fn on(device: FakeDevice, partitions: &[&[usize]]) -> Self {
        Self::of_size(4, device, partitions, usize::MAX)
    }

    fn of_size(
        size: usize,
        device: FakeDevice,
        partitions: &[&[usize]],
        stops_after: usize,
    ) -> Self {
        let serving = Arc::new(Serving { tunable: device, asked: Arc::default() });
        let host = HostDevice::new(serving.clone(), serving.clone());
        let model = Arc::new(TrialModel::new(size).unwrap());
        let prepare = |units: &&[usize]| {
            let partition = host.partition(&units.iter().copied().collect()).unwrap();
            partition.prepare(&*model, &[vec![1]]).unwrap()
        };
        let executables = partitions.iter().map(prepare).collect();
        let turns = Arc::new(InTurn { executables, given: AtomicUsize::new(0), stops_after });
        Self { host, serving, model, turns }
    }

    fn device(&self, tasks: &[Task]) -> TenantDevice {
        let places = vec![UnitSet::first(1)];
        let (model, turns) = (self.model.clone(), self.turns.clone());
        TenantDevice::new(self.serving.clone(), model, turns, places, tasks)
    }

    fn benches(&self) -> Vec<(UnitSet, bool)> {
        self.serving.asked.benches.lock().unwrap().clone()
    }
}

/// Counts trials, and those that failed.
#[derive(Default)]
struct Counting {
    tried: AtomicUsize,
    failed: AtomicUsize,
}

impl Observer for Counting {
    fn starting(&self, _task: usize, _candidate: usize) -> Result<bool, String> {
        Ok(true)
    }

    fn tried(&self, report: &TrialReport) -> Result<(), String> {
        self.tried.fetch_add(1, Ordering::Relaxed);
        self.failed
            .fetch_add(usize::from(matches!(report.trial, Trial::Failed(_))), Ordering::Relaxed);
        Ok(())
    }

    fn chosen(&self, _task: usize, _choice: &Choice) -> Result<(), String> {
        Ok(())
    }

    fn progress(&self, _progress: &Progress) {}
}

fn tasks() -> Vec<Task> {
    vec![
        FakeOperator::new("plain", &[10.0, 7.0, 5.0, 9.0]).task(),
        FakeOperator::new("wrong", &[10.0, 1.0, 5.0, 9.0]).wrong(1).task(),
        FakeOperator::landscape(3, 40).task(),
    ]
}

fn tune_as(
    tenancy: &Tenancy,
    tasks: &[Task],
    counting: &Counting,
) -> Result<Vec<usize>, TuneError> {
    let experience = TrainingRows::default();
    let assignment = Assignment { size: 4, tasks, experience: &experience };
    let device = tenancy.device(tasks);
    tune(&device, assignment, &exhaustive(), counting, &Stop::new()).map(|found| chosen(&found))
}

#[test]
fn a_tenant_finds_what_is_found_on_a_device_of_its_own_one_turn_a_trial() {
    let (tasks, counting) = (tasks(), Counting::default());
    let tenancy = Tenancy::on(FakeDevice::new(4), &[&[0]]);
    let found = tune_as(&tenancy, &tasks, &counting).unwrap();
    let alone = run(&FakeDevice::new(1), &tasks, &exhaustive()).unwrap();
    assert_eq!(found, chosen(&alone));
    let turns = tenancy.turns.given.load(Ordering::Relaxed);
    assert_eq!(turns, counting.tried.load(Ordering::Relaxed));
    assert!(turns >= 48, "{turns}");
}

#[test]
fn a_bench_has_exactly_the_size_that_is_tuned_for_and_the_layer_of_its_partition() {
    let units = |numbers: &[usize]| numbers.iter().copied().collect::<UnitSet>();
    let tenancy = Tenancy::of_size(8, FakeDevice::new(4), &[&[1, 2, 3], &[0, 2]], 0);
    assert_eq!(tenancy.benches(), [(units(&[1, 2]), false), (units(&[0, 2]), false)]);
    let background = tenancy.host.background_partition(&units(&[0, 1, 3])).unwrap().unwrap();
    background.prepare(&*tenancy.model, &[vec![1]]).unwrap();
    assert_eq!(tenancy.benches()[2], (units(&[0, 1]), true));
    let too_small = tenancy.host.partition(&units(&[3])).unwrap();
    too_small.prepare(&*tenancy.model, &[vec![1]]).unwrap();
    assert_eq!(tenancy.benches().len(), 3, "a part of a trial tells nothing");
}

#[test]
fn a_turn_on_a_partition_that_is_too_small_is_no_failure_of_the_candidate() {
    let (tasks, counting) = (tasks(), Counting::default());
    let tenancy = Tenancy::of_size(8, FakeDevice::new(4), &[&[0, 1], &[2]], usize::MAX);
    let experience = TrainingRows::default();
    let assignment = Assignment { size: 8, tasks: &tasks[..1], experience: &experience };
    let device = tenancy.device(&tasks);
    let found = tune(&device, assignment, &exhaustive(), &counting, &Stop::new()).unwrap();
    assert_eq!(chosen(&found), [2]);
    assert_eq!(counting.failed.load(Ordering::Relaxed), 0);

    let nowhere = Tenancy::of_size(8, FakeDevice::new(4), &[&[2]], usize::MAX);
    let counting = Counting::default();
    let device = nowhere.device(&tasks);
    let ended = tune(&device, assignment, &exhaustive(), &counting, &Stop::new());
    assert!(matches!(&ended, Err(TuneError::Device(error)) if error.to_string().contains("8")));
    assert_eq!(counting.tried.load(Ordering::Relaxed), 0, "nothing is held against a candidate");
}

#[test]
fn a_session_ends_with_those_who_give_turns_or_with_the_bench() {
    let (tasks, counting) = (tasks(), Counting::default());
    let tenancy = Tenancy::of_size(4, FakeDevice::new(4), &[&[0]], 5);
    let ended = tune_as(&tenancy, &tasks, &counting);
    assert!(
        matches!(&ended, Err(TuneError::Device(error)) if error.to_string().contains("serves"))
    );
    assert_eq!(counting.tried.load(Ordering::Relaxed), 5);

    let tenancy = Tenancy::on(FakeDevice::new(4).lost_after(3), &[&[0]]);
    let ended = tune_as(&tenancy, &tasks, &Counting::default());
    assert!(matches!(&ended, Err(TuneError::Device(error)) if error.to_string().contains("gone")));
}

#[test]
fn all_other_models_are_the_devices_own() {
    let tenancy = Tenancy::on(FakeDevice::new(4), &[&[0]]);
    let graph = GraphBuilder::new("model", 17).finish().unwrap();
    let model = tenancy.host.load("model", &graph).unwrap();
    for partition in [
        tenancy.host.partition(&UnitSet::first(2)).unwrap(),
        tenancy.host.background_partition(&UnitSet::first(2)).unwrap().unwrap(),
    ] {
        assert_eq!(*partition.units(), UnitSet::first(2));
        partition.prepare(&*model, &[]).unwrap();
    }
    assert_eq!(*tenancy.serving.asked.prepared.lock().unwrap(), ["model", "model"]);
    assert_eq!(tenancy.host.description(), tenancy.serving.description());
    let unknown = tenancy.turns.executables[0].run(&[]).unwrap_err().to_string();
    assert!(unknown.contains("number"), "{unknown}");
}
