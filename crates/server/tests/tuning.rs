//! Tuning beside serving, on the CPU device: what is promised is kept, what is found is used.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use support::read_answer;
use tempfile::TempDir;
use weft_cpu::CpuDevice;
use weft_device::{Device, TunableDevice};
use weft_engine::{Engine, EngineDevice};
use weft_ir::{Dimensions, Value};
use weft_repository::{RepositoryFiles, Settings, generate_key, scan};
use weft_scheduler::{ProfiledDevice, policies};
use weft_server::{
    KernelTuning, Library, Loader, ModelTable, ProfileStore, Server, ServerOptions, Tenants,
    TuningDocument, TuningError, TuningHost, TuningRequest, TuningState,
};
use weft_tuner::choices::Choices;
use weft_tuner::database::Database;
use weft_tuner::tenant::HostDevice;
use weft_zoo::{ZooOptions, build, entry, sample_inputs};

/// With an objective, in the tests where there is one.
const PROMISED: &str = "tiny_resnet";
const OTHER: &str = "tiny_mobilenet_v2";

const OBJECTIVE: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(120);

/// A library that serves two models of the zoo, and what tunes them.
struct Place {
    folder: TempDir,
    device: Arc<CpuDevice>,
    engine: Arc<Engine>,
    table: Arc<ModelTable>,
    library: Arc<Library>,
    tuning: Arc<KernelTuning>,
}

impl Place {
    /// With these settings of the repository, and a database at a place of the folder.
    fn new(settings: &str, database: &str) -> Self {
        Self::in_layers(settings, database, true)
    }

    /// With a background for what is not promised, or without.
    fn in_layers(settings: &str, database: &str, uses_background: bool) -> Self {
        let folder = tempfile::tempdir().expect("there is a place for files");
        for name in [PROMISED, OTHER] {
            let graph = build(name, &ZooOptions::default()).expect("the zoo has it");
            let file = folder.path().join(format!("{name}.onnx"));
            weft_onnx::save(&graph, &file).expect("it is written");
        }
        fs::write(folder.path().join("weft.toml"), settings).expect("it is written");
        let device = Arc::new(CpuDevice::new().expect("there is a CPU"));
        let units = device.units();
        let table = Arc::new(ModelTable::default());
        let memory_bytes = 1 << 30;
        let on = EngineDevice {
            device: Arc::new(HostDevice::new(device.clone(), device.clone())),
            units: units.clone(),
            bandwidth_bytes_per_s: 1e10,
            memory_bytes,
            uses_background,
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
            memory_bytes,
        };
        let onto = device.clone();
        let loader = Loader {
            device: device.clone(),
            load: Box::new(move |name, graph, _| onto.load(name, graph)),
            precision: "f32".into(),
            units: units.clone(),
            dimensions: Dimensions { otherwise: Some(8), ..Dimensions::batch(1) },
            largest_batch: 2,
            profiles: ProfileStore::new(profiled, BTreeMap::new(), None),
            allows_groups: true,
        };
        let look = Box::new(|| Err("nobody looks".to_string()));
        let library = Library::start(loader, engine.clone(), table.clone(), memory_bytes, look);
        let library = Arc::new(library.expect("threads start"));
        let found = scan(&RepositoryFiles::in_folder(folder.path())).expect("it is there");
        library.apply(found).expect("the library lives");
        let tuning = KernelTuning::new(TuningHost {
            engine: engine.clone(),
            library: library.clone(),
            device: device.clone(),
            units,
            database: folder.path().join(database),
        });
        Self { folder, device, engine, table, library, tuning: Arc::new(tuning) }
    }

    fn promising() -> Self {
        Self::new(&promise(OBJECTIVE), "tuning.db")
    }

    /// What a model says to an input that is always the same.
    fn answer(&self, name: &str) -> Result<Vec<Value>, String> {
        let tensors = sample_inputs(entry(name).unwrap(), &ZooOptions::default(), 1, 8).unwrap();
        let inputs = tensors.into_iter().map(Value::from).collect();
        // Held until the answer is there, as a request does.
        let found = self.table.find(name, "").map_err(|error| error.to_string())?;
        let answer = self.engine.infer(found.key, inputs);
        answer.map(|answer| answer.outputs).map_err(|error| error.to_string())
    }

    /// Waits for the session's end.
    fn ended(&self) -> TuningDocument {
        let start = Instant::now();
        loop {
            let document = self.tuning.document();
            if document.state != TuningState::Running {
                return document;
            }
            assert!(start.elapsed() < PATIENCE, "it does not end: {document:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn choices(&self) -> Choices {
        let database = Database::open_read_only(&self.folder.path().join("tuning.db"));
        Choices::load(&database.expect("there is one"), &self.device.platform()).unwrap()
    }

    /// Asks for the model with an objective, about fifty times a second, until `is_enough`; how many requests were asked
    /// and how many were refused, failed or late.
    fn load(&self, is_enough: impl Fn() -> bool) -> (usize, usize) {
        let (mut asked, mut missed) = (0, 0);
        while !is_enough() {
            let start = Instant::now();
            let answer = self.answer(PROMISED);
            asked += 1;
            missed += usize::from(answer.is_err() || start.elapsed() > OBJECTIVE);
            thread::sleep(Duration::from_millis(20).saturating_sub(start.elapsed()));
        }
        (asked, missed)
    }
}

fn promise(objective: Duration) -> String {
    format!("[models.{PROMISED}]\nslo_ms = {}\nrate_per_s = 50\n", objective.as_millis())
}

fn quick() -> TuningRequest {
    TuningRequest { trials: Some(6), effort_ms: Some(1.0), ..TuningRequest::default() }
}

fn is_near(one: &[Value], other: &[Value]) -> bool {
    let floats = |values: &[Value]| -> Vec<f32> {
        let tensors = values.iter().filter_map(Value::tensor);
        tensors.flat_map(|tensor| tensor.to_f32s().unwrap().into_owned()).collect()
    };
    let (one, other) = (floats(one), floats(other));
    let largest = one.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
    one.len() == other.len() && one.iter().zip(&other).all(|(a, b)| (a - b).abs() <= 1e-3 * largest)
}

#[test]
fn objectives_are_kept_while_kernels_are_found_and_models_answer_the_same_with_them() {
    let place = Place::promising();
    let before = [PROMISED, OTHER].map(|name| place.answer(name).unwrap());
    let start = Instant::now();
    let (asked, missed) = place.load(|| start.elapsed() > Duration::from_secs(2));
    let missed_alone = missed as f64 / asked as f64;
    let keys = [PROMISED, OTHER].map(|name| place.table.find(name, "").unwrap().key);

    place.tuning.start(quick()).unwrap();
    assert!(matches!(place.tuning.start(quick()), Err(TuningError::UnderWay)));
    let is_over = || place.tuning.document().state != TuningState::Running;
    let (asked, missed) = place.load(is_over);
    let document = place.ended();
    assert_eq!((document.state, document.error.as_deref()), (TuningState::Done, None));
    let share = missed as f64 / asked as f64;
    assert!(share <= missed_alone + 0.01, "{missed} of {asked}, alone {missed_alone}");

    assert_eq!(document.models, [OTHER, PROMISED]);
    assert_eq!(document.reports.len(), document.sizes.len());
    let operators: usize = document.reports.iter().map(|report| report.operators.len()).sum();
    let trials: usize = document.reports.iter().map(|report| report.trials).sum();
    assert!(trials > operators, "{trials} trials of {operators} operators");
    assert_eq!(place.choices().len(), operators, "every operator is decided");
    for (name, before) in [PROMISED, OTHER].into_iter().zip(&before) {
        assert!(is_near(&place.answer(name).unwrap(), before), "{name}");
    }
    for (name, key) in [PROMISED, OTHER].into_iter().zip(keys) {
        assert_ne!(place.table.find(name, "").unwrap().key, key, "{name} was prepared anew");
    }
    assert_eq!(place.engine.status().models.len(), 2, "the model of trials is gone");

    place.tuning.start(quick()).unwrap();
    let again = place.ended();
    let of_first: Vec<_> =
        document.sizes.iter().filter(|size| again.sizes.contains(size)).collect();
    let repeated = again.reports.iter().filter(|it| of_first.contains(&&it.partition_size));
    assert_eq!(repeated.map(|report| report.trials).sum::<usize>(), 0, "nothing is tried twice");
}

#[test]
fn who_stops_keeps_what_was_found() {
    let place = Place::promising();
    let request = TuningRequest { models: vec![OTHER.into()], ..TuningRequest::default() };
    place.tuning.start(request).unwrap();
    let start = Instant::now();
    while place.tuning.document().progress.is_none_or(|progress| progress.done <= 20) {
        assert!(
            start.elapsed() < PATIENCE && place.tuning.document().state == TuningState::Running
        );
        thread::sleep(Duration::from_millis(5));
    }
    place.tuning.stop();
    let document = place.ended();
    assert_eq!(document.state, TuningState::Stopped);
    assert_eq!(document.models, [OTHER]);
    let file = place.folder.path().join("tuning.db");
    let database = Database::open(&file).unwrap();
    let measured = database.measured_trials(&place.device.platform()).unwrap();
    assert!(measured.len() >= 20, "{}", measured.len());
    assert!(place.answer(OTHER).is_ok() && place.answer(PROMISED).is_ok());
    // Whoever ends the server ends the session, and no trial is left that looks like a crash.
    place.tuning.start(TuningRequest::default()).unwrap();
    place.tuning.end();
    assert_eq!(place.tuning.document().state, TuningState::Stopped);
    place.tuning.start(quick()).unwrap();
}

#[test]
fn what_cannot_be_tuned_is_refused_and_serving_goes_on() {
    let place = Place::promising();
    let refused = |request: TuningRequest| place.tuning.start(request).unwrap_err().to_string();
    let unknown = TuningRequest { models: vec!["unheard".into()], ..quick() };
    assert!(refused(unknown).contains("unheard"));
    for request in [
        TuningRequest { trials: Some(0), ..quick() },
        TuningRequest { batches: vec![1, 0], ..quick() },
        TuningRequest { budget_s: Some(-1.0), ..quick() },
        TuningRequest { effort_ms: Some(f64::NAN), ..quick() },
        TuningRequest { effort_ms: Some(0.0), ..quick() },
    ] {
        assert!(refused(request).contains("must be"));
    }
    assert_eq!(place.tuning.document().state, TuningState::Idle);
    assert_eq!(place.engine.status().models.len(), 2);

    let nowhere = Place::new("", "weft.toml/tuning.db");
    let error = nowhere.tuning.start(quick()).unwrap_err();
    assert!(matches!(error, TuningError::Database(_)), "{error}");
    assert!(nowhere.answer(OTHER).is_ok());

    let broken = Place::new("", "tuning.db");
    fs::write(broken.folder.path().join("tuning.db"), [7; 4096]).unwrap();
    let error = broken.tuning.start(quick()).unwrap_err().to_string();
    assert!(error.contains("not a database"), "{error}");
    assert!(is_readable(&broken.folder.path().join("tuning.db")), "it is left alone");
}

fn is_readable(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes == [7; 4096])
}

#[test]
fn without_a_background_trials_are_as_short_as_objectives_need() {
    let tight = Place::in_layers(&promise(Duration::from_millis(5)), "tuning.db", false);
    let error = tight.tuning.start(quick()).unwrap_err();
    assert!(matches!(&error, TuningError::NoRoom { model, .. } if model == PROMISED), "{error}");

    let place = Place::in_layers(&promise(Duration::from_millis(150)), "tuning.db", false);
    let request = TuningRequest { trials: Some(4), batches: vec![1], ..TuningRequest::default() };
    place.tuning.start(request).unwrap();
    assert_eq!(place.tuning.document().effort_ms, 25.0);
    let document = place.ended();
    assert_eq!((document.state, document.error), (TuningState::Done, None));
    assert!(!place.choices().is_empty());
}

#[test]
fn administrators_begin_watch_and_end_sessions() {
    let place = Place::promising();
    let key = generate_key().unwrap();
    let mut settings = Settings::default();
    settings.admin.key_hashes.push(key.hash);
    let mut options = ServerOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    options.admin_address = Some(options.address);
    options.tenants = Arc::new(Tenants::new(&settings));
    options.tuning = Some(place.tuning.clone());
    let (engine, table) = (place.engine.clone(), place.table.clone());
    let server = Server::start(&options, engine, table, place.library.clone()).unwrap();
    let address = server.admin_address().unwrap();
    let ask = |method: &str, body: &str, key: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        let length = body.len();
        let request = format!(
            "{method} /tuning HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: {key}\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        read_answer(&mut stream)
    };
    let key = key.key.as_str();
    for method in ["GET", "POST", "DELETE"] {
        assert_eq!(ask(method, "{}", "").status, 401, "{method}");
    }
    assert_eq!(ask("GET", "", key).json()["state"], "idle");
    assert_eq!(ask("DELETE", "", key).json()["state"], "idle", "there is nothing to end");
    for (body, status) in [
        ("", 400),
        ("no JSON", 400),
        (r#"{"model":"tiny_resnet"}"#, 400),
        (r#"{"trials":0}"#, 400),
        (r#"{"models":["unheard"]}"#, 404),
    ] {
        let answer = ask("POST", body, key);
        assert_eq!(answer.status, status, "{body}");
        assert!(answer.json()["error"].is_string(), "{body}");
    }
    assert_eq!(ask("PUT", "{}", key).status, 405);
    let body = r#"{"models":["tiny_mobilenet_v2"],"effort_ms":5}"#;
    assert_eq!(ask("POST", body, key).json()["state"], "running");
    let second = ask("POST", "{}", key);
    assert_eq!(
        (second.status, second.json()["error"].as_str()),
        (409, Some("tuning is under way"))
    );
    assert_eq!(ask("DELETE", "", key).status, 200);
    place.ended();
    let document = ask("GET", "", key).json();
    assert_eq!(document["state"], "stopped");
    assert_eq!(document["models"][0], OTHER);
}

#[test]
fn where_nothing_is_promised_all_models_are_tuned_in_their_own_lanes() {
    let place = Place::new("", "tuning.db");
    place.tuning.start(TuningRequest { batches: vec![1], ..quick() }).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut answers = 0;
            while !is_over.load(Ordering::Relaxed) {
                assert!(place.answer(OTHER).is_ok());
                answers += 1;
            }
            answers
        });
        let document = place.ended();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!((document.state, document.error), (TuningState::Done, None));
        assert!(asking.join().unwrap() > 0);
    });
    assert!(!place.choices().is_empty());
}
