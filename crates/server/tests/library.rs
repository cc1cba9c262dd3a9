//! A library on the CPU device: what lies in a folder is served, whatever happens to the folder.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::thread;

use tempfile::TempDir;
use weft_cpu::CpuDevice;
use weft_device::Device;
use weft_engine::{Answer, Engine, EngineDevice, InferError};
use weft_ir::{Dimensions, Value};
use weft_repository::{RepositoryFiles, scan};
use weft_scheduler::{ProfiledDevice, policies};
use weft_server::{Library, Loader, ModelEntry, ModelTable, ProfileStore, Repository, ServeError};
use weft_zoo::{ZooOptions, build, entry, sample_inputs};

const MODEL: &str = "tiny_mobilenet_v2";

struct Shelf {
    folder: TempDir,
    library: Arc<Library>,
    engine: Arc<Engine>,
    table: Arc<ModelTable>,
}

impl Shelf {
    fn with_budget(budget_bytes: u64) -> Self {
        let folder = tempfile::tempdir().expect("there is a place for files");
        let device = Arc::new(CpuDevice::new().expect("there is a CPU"));
        let units = device.units();
        let table = Arc::new(ModelTable::default());
        let on = EngineDevice {
            device: device.clone(),
            units: units.clone(),
            bandwidth_bytes_per_s: 1e10,
            memory_bytes: budget_bytes,
            uses_background: true,
            schedules: None,
        };
        let policy = policies::named("weft").expect("it is there");
        let make = Box::new(|served| policy.make(served));
        let engine = Arc::new(Engine::start(on, make, table.clone()).expect("threads start"));
        let profiled = ProfiledDevice {
            name: "cpu".into(),
            units: units.len() as u32,
            unit: "core".into(),
            bandwidth_bytes_per_s: 1e10,
            memory_bytes: budget_bytes,
        };
        let onto = device.clone();
        let loader = Loader {
            device,
            load: Box::new(move |name, graph, _| onto.load(name, graph)),
            precision: "f32".into(),
            units,
            dimensions: Dimensions { otherwise: Some(8), ..Dimensions::batch(1) },
            largest_batch: 2,
            profiles: ProfileStore::new(profiled, BTreeMap::new(), None),
            allows_groups: true,
        };
        let root = folder.path().to_path_buf();
        let look = Box::new(move || {
            scan(&RepositoryFiles::in_folder(&root)).map_err(|error| error.to_string())
        });
        let library = Library::start(loader, engine.clone(), table.clone(), budget_bytes, look);
        Self { folder, library: Arc::new(library.expect("threads start")), engine, table }
    }

    fn new() -> Self {
        Self::with_budget(1 << 30)
    }

    /// Puts a model of the zoo at a path of the folder.
    fn put(&self, path: &str, seed: u64) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().expect("it is in the folder")).expect("it is writable");
        let options = ZooOptions { seed, ..ZooOptions::default() };
        let graph = build(MODEL, &options).expect("the zoo has it");
        let partial = path.with_extension("partial");
        weft_onnx::save(&graph, &partial).expect("it is written");
        fs::rename(&partial, &path).expect("it is renamed");
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().expect("it is in the folder")).expect("it is writable");
        fs::write(path, text).expect("it is written");
    }

    fn apply(&self) {
        let repository =
            scan(&RepositoryFiles::in_folder(self.folder.path())).expect("it is there");
        self.library.apply(repository).expect("the library lives");
    }

    fn found(&self, name: &str, version: &str) -> Arc<ModelEntry> {
        self.table.find(name, version).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// What a model says to an input that is always the same.
    fn answer(&self, name: &str, version: &str) -> Vec<Value> {
        let answer = self.asked(name, version);
        answer.unwrap_or_else(|error| panic!("{name}: {error}")).outputs
    }

    fn asked(&self, name: &str, version: &str) -> Result<Answer, InferError> {
        let tensors = sample_inputs(entry(MODEL).unwrap(), &ZooOptions::default(), 1, 8).unwrap();
        let inputs = tensors.into_iter().map(Value::from).collect();
        self.engine.infer(self.found(name, version).key, inputs)
    }

    /// The value of a metric without labels.
    fn metric(&self, name: &str) -> f64 {
        support::metric(name, &self.engine, &self.table, self.library.clone())
    }

    fn reason(&self, name: &str) -> String {
        let index = self.library.index();
        index.into_iter().find(|entry| entry.name == name).expect("it is listed").reason
    }
}

#[test]
fn what_lies_in_the_folder_is_served_and_what_is_broken_is_not() {
    let shelf = Shelf::new();
    shelf.put("plain.onnx", 1);
    shelf.put("layered/3/model.onnx", 2);
    shelf.write("broken.onnx", "no model");
    shelf.apply();
    assert_eq!(shelf.found("plain", "").version, 1);
    assert_eq!(shelf.found("layered", "3").version, 3);
    assert_ne!(shelf.answer("plain", ""), shelf.answer("layered", ""));
    assert!(matches!(shelf.table.find("broken", ""), Err(ServeError::UnknownModel(_))));
    assert!(!shelf.reason("broken").is_empty());
    fs::remove_file(shelf.folder.path().join("plain.onnx")).unwrap();
    shelf.apply();
    assert!(shelf.table.find("plain", "").is_err() && shelf.table.find("layered", "").is_ok());
}

#[test]
fn a_new_version_takes_over_and_a_broken_one_does_not() {
    let shelf = Shelf::new();
    shelf.put("model/1/model.onnx", 1);
    shelf.apply();
    let first = shelf.answer("model", "");
    shelf.write("model/2/model.onnx", "no model");
    shelf.apply();
    assert_eq!(shelf.answer("model", ""), first, "a broken version changes nothing");
    shelf.put("model/2/model.onnx", 2);
    shelf.apply();
    assert_eq!(shelf.found("model", "").version, 2);
    assert_ne!(shelf.answer("model", ""), first);
    assert!(shelf.table.find("model", "1").is_err(), "only the latest is served");
    shelf.put("model/2/model.onnx", 1);
    shelf.apply();
    assert_eq!(shelf.answer("model", "2"), first, "a file that changed is read again");
    shelf.write("model/2/model.onnx", "no model");
    shelf.apply();
    assert_eq!(shelf.answer("model", "2"), first, "one that breaks is served as it was");
}

#[test]
fn operators_put_models_out_and_bring_them_back() {
    let shelf = Shelf::new();
    shelf.put("model.onnx", 1);
    shelf.apply();
    shelf.library.unload("model").unwrap();
    assert!(matches!(shelf.table.find("model", ""), Err(ServeError::UnknownModel(_))));
    assert_eq!(shelf.reason("model"), "unloaded");
    shelf.apply();
    assert!(shelf.table.find("model", "").is_err(), "it stays out whatever the disk says");
    shelf.library.load("model", None).unwrap();
    shelf.answer("model", "");
    shelf.put("late.onnx", 2);
    shelf.library.load("late", None).unwrap();
    shelf.answer("late", "");
    shelf.write("weft.toml", "[models.model]\nweight = -1\n");
    shelf.library.load("model", None).unwrap();
    shelf.answer("model", "");
    shelf.answer("late", "");
    for name in ["unheard", "../model"] {
        assert!(matches!(shelf.library.load(name, None), Err(ServeError::UnknownModel(_))));
        assert!(matches!(shelf.library.unload(name), Err(ServeError::UnknownModel(_))));
    }
}

#[test]
fn models_that_do_not_fit_together_take_turns() {
    let one = {
        let shelf = Shelf::new();
        shelf.put("only.onnx", 1);
        shelf.apply();
        shelf.library.memory_bytes()
    };
    let shelf = Shelf::with_budget(one * 5 / 2);
    for (name, seed) in [("a", 1), ("b", 2), ("c", 3)] {
        shelf.put(&format!("{name}.onnx"), seed);
    }
    shelf.apply();
    assert!(shelf.table.find("a", "").is_ok() && shelf.table.find("b", "").is_ok());
    assert!(matches!(shelf.table.find("c", ""), Err(ServeError::Asleep(_))));
    shelf.library.wake("c").unwrap();
    shelf.answer("c", "");
    let asleep = |name| matches!(shelf.table.find(name, ""), Err(ServeError::Asleep(_)));
    assert!(asleep("a") != asleep("b"), "one of them has left for it, and no more than one");
}

#[test]
fn a_model_takes_no_more_than_it_may() {
    let shelf = Shelf::new();
    shelf.put("model.onnx", 1);
    shelf.write("weft.toml", "[models.model]\nmemory_limit_mib = 0.001\n");
    shelf.apply();
    assert!(shelf.table.find("model", "").is_err());
    assert!(shelf.reason("model").contains("may take"), "{}", shelf.reason("model"));
}

#[test]
fn limits_of_requests_count_from_when_they_are_agreed() {
    let shelf = Shelf::new();
    shelf.put("model.onnx", 1);
    shelf.apply();
    let key = shelf.found("model", "").key;
    shelf.answer("model", "");
    shelf.write("weft.toml", "[models.model]\ntimeout_ms = 0.000001\n");
    shelf.apply();
    assert!(matches!(shelf.asked("model", ""), Err(InferError::Refused(_))));
    shelf.write("weft.toml", "[models.model]\ntimeout_ms = 60000\nmax_queue = 1\n");
    shelf.apply();
    shelf.answer("model", "");
    assert_eq!(shelf.found("model", "").key, key, "it was not loaded again");
}

fn assert_close(left: &[Value], right: &[Value]) {
    let elements =
        |values: &[Value]| values[0].tensor().unwrap().elements::<f32>().unwrap().to_vec();
    for (left, right) in elements(left).into_iter().zip(elements(right)) {
        assert!((left - right).abs() < 1e-4, "{left} and {right}");
    }
}

#[test]
fn models_that_differ_in_their_weights_alone_form_a_group() {
    let shelf = Shelf::new();
    for (name, seed) in [("a", 1), ("b", 2), ("other", 3)] {
        shelf.put(&format!("{name}.onnx"), seed);
    }
    let settings = |groups| {
        format!("[server]\ngroups = {groups}\ngroup_entries = 4\n[models.other]\nslo_ms = 60000\n")
    };
    let counts = || ["weft_groups", "weft_group_members"].map(|name| shelf.metric(name));
    shelf.write("weft.toml", &settings(false));
    shelf.apply();
    assert_eq!(counts(), [0.0, 0.0]);
    let names = ["a", "b", "other"];
    let alone = names.map(|name| shelf.answer(name, ""));
    shelf.write("weft.toml", &settings(true));
    shelf.apply();
    assert_eq!(counts(), [1.0, 2.0], "another objective is no reason to share");
    thread::scope(|scope| {
        for caller in 0..6 {
            let (shelf, alone) = (&shelf, &alone);
            scope.spawn(move || {
                for round in 0..6 {
                    let which = (caller + round) % names.len();
                    assert_close(&shelf.answer(names[which], ""), &alone[which]);
                }
            });
        }
    });
    // A new version is like the one that it takes the place of.
    shelf.put("b.onnx", 3);
    shelf.apply();
    assert_eq!(counts(), [1.0, 2.0]);
    assert_close(&shelf.answer("b", ""), &alone[2]);
    fs::remove_file(shelf.folder.path().join("a.onnx")).unwrap();
    shelf.apply();
    assert_eq!(counts(), [0.0, 0.0], "one is no group");
    assert_close(&shelf.answer("b", ""), &alone[2]);
}

#[test]
fn what_a_group_takes_is_counted_and_a_group_without_room_is_none() {
    let shelf = |budget_bytes, groups: bool| {
        let shelf = Shelf::with_budget(budget_bytes);
        shelf.put("a.onnx", 1);
        shelf.put("b.onnx", 2);
        let settings = format!("[server]\ngroups = {groups}\ngroup_entries = 4\n");
        shelf.write("weft.toml", &settings);
        shelf.apply();
        shelf
    };
    let taken = |shelf: &Shelf| (shelf.library.memory_bytes(), shelf.metric("weft_groups"));
    let (apart, none) = taken(&shelf(1 << 30, false));
    let (together, one) = taken(&shelf(1 << 30, true));
    assert_eq!((none, one), (0.0, 1.0));
    assert!(together > apart, "{together} {apart}");
    assert_eq!(taken(&shelf(together, true)), (together, 1.0));
    let tight = shelf(together - 1, true);
    assert_eq!(taken(&tight), (apart, 0.0), "both are served, each by itself");
    for name in ["a", "b"] {
        tight.answer(name, "");
    }
    // A model that comes has the room of a group.
    let full = shelf(together, true);
    full.put("c.onnx", 3);
    full.write(
        "weft.toml",
        "[server]\ngroups = true\ngroup_entries = 4\n[models.c]\nkeep_loaded = true\n",
    );
    full.apply();
    assert!(taken(&full).0 <= together);
    full.answer("c", "");
}
