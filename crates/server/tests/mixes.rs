//! Mixes in the memory that models may take, on a library whose device says that they are faster than their models one after
//! another.

mod support;
#[path = "../../engine/tests/support/watched_mix.rs"]
mod watched_mix;

use std::collections::BTreeMap;
use std::fs;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use weft_cpu::CpuDevice;
use weft_device::{
    Device, DeviceDescription, DeviceError, LoadedModel, Mix, MixMember, MixSegment, Partition,
    UnitSet,
};
use weft_engine::{
    Claim, Engine, EngineDevice, MixOutcome, ModelKey, NoSchedules, Observer, Submission,
};
use weft_ir::{Dimensions, Graph, Value};
use weft_repository::{RepositoryFiles, scan};
use weft_scheduler::{Profile, ProfilePoint, ProfiledDevice, Span, policies};
use weft_server::{Library, Loader, ModelTable, ProfileStore};
use weft_zoo::{ZooOptions, build, entry, sample_inputs};

use watched_mix::WatchedMix;

const MIXED: [&str; 2] = ["tiny_resnet", "tiny_mobilenet_v2"];
const NEWCOMER: &str = "tiny_vgg";

/// What each model of the mix is said to take, and what all may take.
const MODEL_BYTES: u64 = 1 << 20;
const BUDGET_BYTES: u64 = 64 << 20;

/// Within this, what is waited for has long happened.
const PATIENCE: Duration = Duration::from_secs(60);

/// A CPU whose mixes are said to be faster than their models one after another.
struct MixingCpu(CpuDevice);

fn said_us(segments: &[MixSegment]) -> f64 {
    let are_in_turns =
        segments.len() == MIXED.len() && segments.iter().all(|segment| segment.units.len() == 2);
    if are_in_turns { 1000.0 } else { 500.0 }
}

impl Device for MixingCpu {
    fn description(&self) -> DeviceDescription {
        self.0.description()
    }

    fn load(&self, name: &str, graph: &Graph) -> Result<Arc<dyn LoadedModel>, DeviceError> {
        self.0.load(name, graph)
    }

    fn partition(&self, units: &UnitSet) -> Result<Arc<dyn Partition>, DeviceError> {
        self.0.partition(units)
    }

    fn mix(
        &self,
        models: &[MixMember],
        units: &UnitSet,
    ) -> Option<Result<Box<dyn Mix>, DeviceError>> {
        let watched = |mix| WatchedMix {
            mix,
            runs: Arc::default(),
            wrong: None,
            said_us: Some(said_us),
            shared_us: None,
            chunked_step_us: None,
            bytes_per_run: 0,
        };
        let mix = self.0.mix(models, units)?;
        Some(mix.map(|mix| Box::new(watched(mix)) as Box<dyn Mix>))
    }
}

/// What came of mixes.
#[derive(Default)]
struct Seen(Mutex<Vec<MixOutcome>>);

impl Observer for Seen {
    fn regulated(&self, _models: &[(ModelKey, u32)], outcome: &MixOutcome) {
        self.0.lock().unwrap().push(outcome.clone());
    }
}

struct Shelf {
    folder: TempDir,
    library: Arc<Library>,
    engine: Arc<Engine>,
    table: Arc<ModelTable>,
    seen: Arc<Seen>,
}

impl Shelf {
    /// Two models that one core is said to be too slow for, and one that is said to take so much when it comes.
    fn with_newcomer_of(newcomer_bytes: u64) -> Self {
        let folder = tempfile::tempdir().expect("there is a place for files");
        let cpu = CpuDevice::new().expect("there is a CPU");
        let units: UnitSet = cpu.units().iter().take(2).collect();
        let device = Arc::new(MixingCpu(cpu));
        let on = EngineDevice {
            device: device.clone(),
            units: units.clone(),
            bandwidth_bytes_per_s: 1e10,
            memory_bytes: BUDGET_BYTES,
            uses_background: false,
            schedules: Some(Arc::new(NoSchedules)),
        };
        let policy = policies::named("weft").expect("it is there");
        let make = Box::new(|served| policy.make(served));
        let seen = Arc::new(Seen::default());
        let engine = Arc::new(Engine::start(on, make, seen.clone()).expect("threads start"));
        let profiled = ProfiledDevice {
            name: "cpu".into(),
            units: 2,
            unit: "core".into(),
            bandwidth_bytes_per_s: 1e10,
            memory_bytes: BUDGET_BYTES,
        };
        let given = MIXED.map(|name| (name.to_string(), profile([1.9e6, 50e3], MODEL_BYTES)));
        let newcomer = (NEWCOMER.to_string(), profile([1e3, 1e3], newcomer_bytes));
        let given = BTreeMap::from_iter(given.into_iter().chain([newcomer]));
        let onto = device.clone();
        let loader = Loader {
            device,
            load: Box::new(move |name, graph, _| onto.load(name, graph)),
            precision: "f32".into(),
            units,
            dimensions: Dimensions { otherwise: Some(8), ..Dimensions::batch(1) },
            largest_batch: 1,
            profiles: ProfileStore::new(profiled, given, None),
            allows_groups: false,
        };
        let root = folder.path().to_path_buf();
        let look = Box::new(move || {
            scan(&RepositoryFiles::in_folder(&root)).map_err(|error| error.to_string())
        });
        let table = Arc::new(ModelTable::default());
        let library = Library::start(loader, engine.clone(), table.clone(), BUDGET_BYTES, look);
        let library = Arc::new(library.expect("threads start"));
        let shelf = Self { folder, library, engine, table, seen };
        fs::write(shelf.folder.path().join("weft.toml"), "[defaults]\nslo_ms = 2000\n")
            .expect("it is written");
        shelf.put(&MIXED);
        shelf
    }

    fn put(&self, names: &[&str]) {
        for name in names {
            let graph = build(name, &ZooOptions::default()).expect("the zoo has it");
            weft_onnx::save(&graph, self.folder.path().join(format!("{name}.onnx")))
                .expect("it is written");
        }
        let repository =
            scan(&RepositoryFiles::in_folder(self.folder.path())).expect("it is there");
        self.library.apply(repository).expect("the library lives");
    }

    /// Asks both models at once, and rests for a while.
    fn round(&self) {
        let answers = MIXED.map(|name| {
            let entry = self.table.find(name, "").expect("it is served");
            let (answer, answered) = channel();
            let reply = Box::new(move |result| drop(answer.send(result)));
            let (model, inputs, claim) = (entry.key, inputs(name), Claim::Promised);
            self.engine.submit(Submission { model, inputs, rows: 1, timeout: None, claim }, reply);
            answered
        });
        for answer in answers {
            answer.recv().expect("an answer comes").expect("it is in time");
        }
        thread::sleep(Duration::from_millis(4));
    }

    /// Sends rounds until so many mixes were regulated, or let go of: what came of them.
    fn outcomes(&self, count: usize) -> Vec<MixOutcome> {
        let begun = Instant::now();
        loop {
            let seen = self.seen.0.lock().unwrap().clone();
            if seen.len() >= count {
                return seen;
            }
            assert!(begun.elapsed() < PATIENCE, "{seen:?}");
            self.round();
        }
    }

    /// The value of a metric without labels.
    fn metric(&self, name: &str) -> f64 {
        support::metric(name, &self.engine, &self.table, self.library.clone())
    }
}

/// How long an entry takes on one unit and on two, in microseconds.
fn profile(latencies_us: [f64; 2], memory_bytes: u64) -> Profile {
    let point = |(units, us)| {
        let latency = Span::from_us(us);
        ProfilePoint { batch: 1, units, latency, dram_bytes: 0.0 }
    };
    let points: Vec<ProfilePoint> = (1..).zip(latencies_us).map(point).collect();
    Profile::new(&points, memory_bytes).expect("a full grid")
}

fn inputs(name: &str) -> Vec<Value> {
    let entry = entry(name).expect("the zoo has it");
    let tensors = sample_inputs(entry, &ZooOptions::default(), 1, 8).expect("it takes them");
    tensors.into_iter().map(Value::from).collect()
}

/// What a mix of the models takes, as the device says.
fn mix_bytes() -> u64 {
    let cpu = CpuDevice::new().expect("there is a CPU");
    let member = |name: &str| {
        let graph = build(name, &ZooOptions::default()).expect("the zoo has it");
        let inputs = inputs(name);
        let shapes = inputs.iter().map(|input| input.tensor().expect("it is one").shape().to_vec());
        MixMember { model: cpu.load(name, &graph).expect("it loads"), shapes: shapes.collect() }
    };
    let units = cpu.units().iter().take(2).collect();
    let mix = cpu.mix(&MIXED.map(member), &units).expect("a CPU has mixes");
    mix.expect("it is prepared").memory_bytes() as u64
}

#[test]
fn what_a_mix_takes_is_counted_and_a_model_that_comes_has_the_room() {
    let memory_bytes = mix_bytes();
    let models_bytes = MIXED.len() as u64 * MODEL_BYTES;
    let free_bytes = memory_bytes - 1;
    let shelf = Shelf::with_newcomer_of(BUDGET_BYTES - models_bytes - free_bytes);
    assert_eq!(shelf.library.memory_bytes(), models_bytes);
    let outcomes = shelf.outcomes(1);
    assert!(matches!(outcomes[..], [MixOutcome::Faster { .. }]), "{outcomes:?}");
    assert_eq!(shelf.library.memory_bytes(), models_bytes + memory_bytes);
    assert_eq!(shelf.metric("weft_models_memory_bytes"), (models_bytes + memory_bytes) as f64);

    shelf.put(&[NEWCOMER]);
    let no_room = MixOutcome::NoRoom { memory_bytes, free_bytes };
    assert_eq!(shelf.outcomes(2)[1], no_room, "it is let go of");
    shelf.table.find(NEWCOMER, "").expect("it is served");
    assert_eq!(shelf.library.memory_bytes(), BUDGET_BYTES - free_bytes);
    assert_eq!(shelf.outcomes(3)[2], no_room, "and is not made anew");
    assert_eq!(shelf.metric("weft_mixes"), 0.0);
    assert_eq!(shelf.library.memory_bytes(), BUDGET_BYTES - free_bytes);
}
