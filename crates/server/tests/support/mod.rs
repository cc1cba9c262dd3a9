//! A real server on a free port, with an identity model and a small convolutional one, and a plain client.

#![allow(dead_code, reason = "each test file uses its part of it")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;
use weft_cpu::CpuDevice;
use weft_device::Device;
use weft_engine::{Engine, EngineDevice, EngineModel, ModelKey, ModelLimits};

use weft_ir::{Attributes, DataType, Dimension, Dimensions, Graph, GraphBuilder};
use weft_scheduler::{Profile, ProfilePoint, ServedModel, Span, policies};
use weft_server::{
    FixedRepository, Library, Limits, ModelEntry, ModelTable, Server, ServerOptions, Signature,
};
use weft_zoo::{ZooOptions, build};

/// How many entries a batch has at most.
pub(crate) const MAX_BATCH: u32 = 8;

/// The model that answers rows of 16 floats with themselves.
pub(crate) const IDENTITY: &str = "identity";
/// A model that computes something.
pub(crate) const NETWORK: &str = "tiny_mobilenet_v2";

/// A server, and what it serves from.
pub(crate) struct Served {
    pub(crate) server: Server,
    pub(crate) engine: Arc<Engine>,
    pub(crate) table: Arc<ModelTable>,
}

/// Starts a server with its usual limits.
pub(crate) fn start() -> Served {
    start_with(Limits::default())
}

/// Starts a server with limits of one's own.
pub(crate) fn start_with(limits: Limits) -> Served {
    start_serving(limits, None)
}

/// Starts a server with one more model.
pub(crate) fn start_serving(limits: Limits, more: Option<(&'static str, Graph)>) -> Served {
    start_changed(more, |options| options.limits = limits)
}

/// Starts a server with options of one's own, on a free port.
pub(crate) fn start_changed(
    more: Option<(&'static str, Graph)>,
    change: impl FnOnce(&mut ServerOptions),
) -> Served {
    let device = Arc::new(CpuDevice::new().expect("there is a CPU"));
    let table = Arc::new(ModelTable::default());
    let network = build(NETWORK, &ZooOptions::default()).expect("the zoo has it");
    let graphs = [(IDENTITY, identity()), (NETWORK, network)].into_iter().chain(more);
    let (models, entries): (Vec<_>, Vec<_>) =
        graphs.map(|(name, graph)| model(&device, name, &graph)).unzip();
    let on = EngineDevice {
        units: device.units(),
        device,
        bandwidth_bytes_per_s: 1e10,
        memory_bytes: 1 << 30,
        uses_background: false,
        schedules: None,
    };
    let policy = policies::named("weft").expect("it is there");
    let make = Box::new(|served| policy.make(served));
    let engine = Arc::new(Engine::start(on, make, table.clone()).expect("threads start"));
    engine.serve(models).expect("they are prepared");
    let repository = Arc::new(FixedRepository::new(table.clone(), entries));
    let mut options = ServerOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    options.grpc_address = Some(options.address);
    options.admin_address = Some(options.address);
    change(&mut options);
    let server = Server::start(&options, engine.clone(), table.clone(), repository);
    Served { server: server.expect("a port is free"), engine, table }
}

fn identity() -> Graph {
    let mut builder = GraphBuilder::new(IDENTITY, 17);
    let rows = Dimension::Symbol("batch".into());
    let x = builder.symbolic_input("x", DataType::F32, &[rows, Dimension::Known(16)]);
    let y = builder.node("Identity", &[x], Attributes::new());
    builder.output("y", y);
    builder.finish().expect("it is whole")
}

fn model(device: &CpuDevice, name: &str, graph: &Graph) -> (EngineModel, Arc<ModelEntry>) {
    // What it says hardly matters here, but for the largest batch.
    let point = |batch| ProfilePoint {
        batch,
        units: 1,
        latency: Span::from_us(500.0 * f64::from(batch)),
        dram_bytes: 0.0,
    };
    let profile = Profile::new(&[point(1), point(MAX_BATCH)], 1 << 20).expect("a full grid");
    let (key, dimensions) = (ModelKey::unused(), Dimensions::batch(1));
    let signature = Signature::of(graph, &dimensions, MAX_BATCH as usize).expect("it is sound");
    let served = ServedModel {
        profile: Arc::new(profile),
        slo: None,
        expected_per_s: 100.0,
        weight: 1.0,
        priority: 0,
        group: None,
    };
    let loaded = device.load(name, graph).expect("it loads");
    let entry = Arc::new(ModelEntry::new(name.into(), 1, signature, key));
    let limits = ModelLimits::default();
    (EngineModel { key, loaded, dimensions, served, limits, group: None }, entry)
}

/// An answer over HTTP.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Json {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// A header's value, by its name in small letters.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .into_iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The word for programs that says what went wrong.
    pub(crate) fn reason(&self) -> String {
        self.json()["reason"].as_str().unwrap_or_default().to_string()
    }
}

impl Served {
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[])
    }

    pub(crate) fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let more = lines(headers);
        self.send(
            &format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{more}\r\n"),
            &[],
        )
    }

    /// Asks for administration.
    pub(crate) fn admin(&self, path: &str) -> Answer {
        self.admin_with("GET", path, "")
    }

    pub(crate) fn admin_with(&self, method: &str, path: &str, headers: &str) -> Answer {
        let address = self.server.admin_address().expect("it has one");
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("it is a socket");
        let head =
            format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).expect("it is connected");
        read_answer(&mut stream)
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        self.post_with(path, &[], body.as_bytes())
    }

    pub(crate) fn post_with(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let more = lines(headers);
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n{more}\r\n"
        );
        self.send(&head, body)
    }

    /// Sends exactly these bytes, and reads until the server closes the connection.
    pub(crate) fn send(&self, head: &str, body: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that refuses early may close before all is sent.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        read_answer(&mut stream)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.server.address()).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("it is a socket");
        stream
    }
}

fn lines(headers: &[(&str, &str)]) -> String {
    headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
}

/// Reads until the other side closes.
pub(crate) fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut received = Vec::new();
    let _ = stream.read_to_end(&mut received);
    let end = received.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no head: {}", String::from_utf8_lossy(&received)));
    let head = String::from_utf8_lossy(&received[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    Answer { status, head, body: received[end + 4..].to_vec() }
}

/// The JSON of a request to the identity model.
pub(crate) fn identity_request(rows: usize) -> String {
    let data: Vec<String> = (0..rows * 16).map(|number| format!("{number}.5")).collect();
    format!(
        r#"{{"id":"7","inputs":[{{"name":"x","shape":[{rows},16],"datatype":"FP32","data":[{}]}}]}}"#,
        data.join(",")
    )
}

/// The value of a metric without labels, as a server of these models tells it.
pub(crate) fn metric(
    name: &str,
    engine: &Arc<Engine>,
    table: &Arc<ModelTable>,
    library: Arc<Library>,
) -> f64 {
    let mut options = ServerOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    options.admin_address = Some(options.address);
    let server = Server::start(&options, engine.clone(), table.clone(), library);
    let server = server.expect("a port is free");
    let mut stream = TcpStream::connect(server.admin_address().unwrap()).expect("it listens");
    let head = "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("it is connected");
    let page = String::from_utf8(read_answer(&mut stream).body).expect("metrics are text");
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name}: {page}")).parse().expect("it is a number")
}
