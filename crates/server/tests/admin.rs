//! What a server tells of itself: metrics that count exactly what was sent, the status, and traces.

mod support;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use support::{
    Answer, IDENTITY, NETWORK, Served, identity_request, read_answer, start, start_changed,
    start_serving,
};
use weft_ir::{Attributes, DataType, Dimension, Graph, GraphBuilder, Tensor};
use weft_repository::{Settings, generate_key};
use weft_server::{Limits, StatusDocument, Tenants};

const LOOKUP: &str = "lookup";

/// A model that fails where it is asked for what is not in its table of four.
fn lookup() -> Graph {
    let mut builder = GraphBuilder::new(LOOKUP, 17);
    let rows = Dimension::Symbol("batch".into());
    let x = builder.symbolic_input("x", DataType::I64, &[rows, Dimension::Known(1)]);
    let table = Tensor::filled(vec![4, 8], 1.0).expect("it is small");
    let table = builder.constant("table", table);
    let y = builder.node("Gather", &[table, x], Attributes::new());
    builder.output("y", y);
    builder.finish().expect("it is whole")
}

fn look_up(served: &Served, number: u32) -> Answer {
    let body = format!(
        r#"{{"inputs":[{{"name":"x","shape":[1,1],"datatype":"INT64","data":[{number}]}}]}}"#
    );
    served.post("/v2/models/lookup/infer", &body)
}

/// A page of metrics, read as Prometheus reads it.
struct Page(BTreeMap<String, f64>);

impl Page {
    fn of(served: &Served) -> Self {
        let answer = served.admin("/metrics");
        assert_eq!(answer.status, 200);
        let content_type = answer.header("content-type").expect("it has one");
        assert!(content_type.starts_with("text/plain; version=0.0.4"), "{content_type}");
        let text = String::from_utf8(answer.body).expect("it is text");
        let (mut values, mut kinds) = (BTreeMap::new(), BTreeMap::new());
        for line in text.lines() {
            if let Some(comment) = line.strip_prefix("# ") {
                let mut words = comment.split(' ');
                if words.next() == Some("TYPE") {
                    let name = words.next().expect("a name").to_string();
                    let kind = words.next().expect("a kind").to_string();
                    assert!(kinds.insert(name, kind).is_none(), "twice: {line}");
                }
                continue;
            }
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let name = series.split('{').next().expect("a name");
            let family = kinds.keys().any(|family| {
                let rest = name.strip_prefix(family.as_str());
                matches!(rest, Some("" | "_bucket" | "_sum" | "_count"))
            });
            assert!(family, "of no declared kind: {line}");
            let value = value.parse().expect("a number");
            assert!(values.insert(series.to_string(), value).is_none(), "twice: {line}");
        }
        Self(values)
    }

    fn get(&self, series: &str) -> f64 {
        let found = self.0.get(series);
        *found.unwrap_or_else(|| panic!("{series} is not among {:#?}", self.0.keys()))
    }

    fn requests(&self, model: &str, outcome: &str) -> f64 {
        self.get(&format!(r#"weft_requests_total{{model="{model}",outcome="{outcome}"}}"#))
    }
}

#[test]
fn metrics_count_exactly_what_was_sent() {
    let served = start_serving(Limits::default(), Some((LOOKUP, lookup())));
    for rows in [1, 3, 8] {
        let answer = served.post("/v2/models/identity/infer", &identity_request(rows));
        assert_eq!(answer.status, 200);
    }
    served.post("/v2/models/identity/infer", r#"{"inputs":[]}"#);
    served.post("/v2/models/identity/infer", "no JSON");
    served.post("/v2/models/identity/versions/9/infer", &identity_request(1));
    served.post("/v2/models/unheard/infer", &identity_request(1));
    assert_eq!(look_up(&served, 3).status, 200);
    let failed = look_up(&served, 4);
    assert_eq!(failed.status, 500, "{}", String::from_utf8_lossy(&failed.body));

    let page = Page::of(&served);
    let of_identity =
        ["ok", "refused", "failed", "cancelled"].map(|it| page.requests(IDENTITY, it));
    assert_eq!(of_identity, [3.0, 3.0, 0.0, 0.0]);
    assert_eq!((page.requests(LOOKUP, "ok"), page.requests(LOOKUP, "failed")), (1.0, 1.0));
    // Requests for what is not there are nobody's.
    assert_eq!(page.requests("", "refused"), 1.0);
    for (model, reason) in [
        (IDENTITY, "wrong_tensors"),
        (IDENTITY, "malformed_request"),
        ("", "unknown_model"),
        (IDENTITY, "unknown_version"),
    ] {
        let series = format!(r#"weft_refusals_total{{model="{model}",reason="{reason}"}}"#);
        assert_eq!(page.get(&series), 1.0, "{series}");
    }
    assert_eq!(page.get(r#"weft_rows_total{model="identity"}"#), 12.0);
    assert_eq!(page.get(r#"weft_batch_rows_sum{model="identity"}"#), 12.0);
    assert_eq!(page.get(r#"weft_queue_duration_seconds_count{model="identity"}"#), 3.0);
    assert_eq!(page.get(r#"weft_models{state="ready"}"#), 3.0);
    assert_eq!(page.get("weft_requests_in_flight"), 0.0);
    assert_eq!(page.get(r#"weft_queue_rows{model="identity"}"#), 0.0);
    assert!(page.get("weft_repartitions_total") >= 1.0);
    assert!(page.get("process_resident_memory_bytes") > 1e6);
}

#[test]
fn histograms_agree_with_counts_and_with_each_other() {
    let served = start();
    for _ in 0..20 {
        served.post("/v2/models/identity/infer", &identity_request(2));
    }
    let page = Page::of(&served);
    let labels = r#"{model="identity",outcome="ok"}"#;
    let count = page.get(&format!("weft_request_duration_seconds_count{labels}"));
    assert_eq!((count, page.requests(IDENTITY, "ok")), (20.0, 20.0));
    let buckets: Vec<f64> = page
        .0
        .iter()
        .filter(|(series, _)| {
            series.starts_with("weft_request_duration_seconds_bucket{model=\"identity\"")
        })
        .map(|(_, value)| *value)
        .collect();
    assert_eq!(buckets.len(), 36);
    assert_eq!(buckets.iter().copied().fold(0.0, f64::max), count);
    let sum = |name: &str| page.get(&format!(r#"{name}_sum{{model="identity"}}"#));
    let whole = page.get(&format!("weft_request_duration_seconds_sum{labels}"));
    assert!(sum("weft_queue_duration_seconds") <= whole);
    assert!(sum("weft_execution_duration_seconds") <= whole);
    assert!(sum("weft_execution_duration_seconds") > 0.0);
    let busy = r#"weft_busy_unit_seconds_total{model="identity",layer="foreground"}"#;
    assert!(page.get(busy) >= sum("weft_execution_duration_seconds"));
}

#[test]
fn requests_with_a_deadline_are_judged() {
    let served = start();
    let with_timeout = |us: u64| {
        let mut request: serde_json::Value = serde_json::from_str(&identity_request(1)).unwrap();
        request["parameters"] = serde_json::json!({ "timeout": us });
        served.post("/v2/models/identity/infer", &request.to_string()).status
    };
    assert_eq!(with_timeout(20_000_000), 200);
    assert_eq!(with_timeout(1), 504);
    served.post("/v2/models/identity/infer", &identity_request(1));
    let page = Page::of(&served);
    assert_eq!(page.get(r#"weft_objective_requests_total{model="identity"}"#), 2.0);
    assert_eq!(page.get(r#"weft_objective_met_total{model="identity"}"#), 1.0);
}

#[test]
fn whoever_hangs_up_is_counted_as_cancelled() {
    let served = start();
    let mut stream = served.connect();
    let head = "POST /v2/models/identity/infer HTTP/1.1\r\nhost: x\r\ncontent-length: 999\r\n\r\n{";
    stream.write_all(head.as_bytes()).expect("it is connected");
    let requests =
        |page: &Page| page.requests(IDENTITY, "cancelled") + page.requests(IDENTITY, "refused");
    assert_eq!(requests(&Page::of(&served)), 0.0);
    drop(stream);
    let end = Instant::now() + Duration::from_secs(20);
    while requests(&Page::of(&served)) < 1.0 && Instant::now() < end {
        std::thread::yield_now();
    }
    assert_eq!(requests(&Page::of(&served)), 1.0);
}

#[test]
fn the_status_agrees_with_the_engine() {
    let served = start();
    for _ in 0..5 {
        served.post("/v2/models/identity/infer", &identity_request(4));
    }
    let answer = served.admin("/status");
    assert_eq!(answer.status, 200);
    let status: StatusDocument = serde_json::from_slice(&answer.body).expect("it is the document");
    let engine = served.engine.status();
    assert_eq!(status.units, engine.units);
    assert_eq!(status.partitions.len(), engine.partitions.len());
    for (told, is) in status.partitions.iter().zip(&engine.partitions) {
        assert_eq!(told.units, is.units.iter().collect::<Vec<_>>());
        assert_eq!(told.models.len(), is.models.len());
    }
    let names: Vec<&str> = status.models.iter().map(|model| model.name.as_str()).collect();
    assert_eq!(names, [IDENTITY, NETWORK]);
    let identity = &status.models[0];
    assert_eq!((identity.state.as_str(), identity.requests["ok"]), ("ready", 5));
    let holds = |name: &str| {
        let partitions = status.partitions.iter();
        let holding = partitions.filter(|it| it.models.iter().any(|model| model == name));
        holding.map(|partition| partition.units.len() as u32).sum::<u32>()
    };
    assert_eq!(identity.units_held, holds(IDENTITY));
    assert!(identity.requests_per_s > 0.0 && identity.units_asked > 0.0);
    let latency = identity.latency.expect("some were answered");
    assert!(latency.p50_ms > 0.0 && latency.p50_ms <= latency.p99_ms);
    assert!(identity.batch_rows.is_some_and(|rows| (1.0..=8.0).contains(&rows)));
    assert_eq!(status.models[1].requests["ok"], 0);
    assert!(status.models[1].latency.is_none());
}

#[test]
fn a_trace_has_the_launches_of_its_time() {
    const SENT: usize = 6;
    let served = start();
    served.post("/v2/models/identity/infer", &identity_request(1));
    let trace = std::thread::scope(|scope| {
        let tracing = scope.spawn(|| {
            let traces = std::iter::repeat_with(|| served.admin("/trace?seconds=4"));
            traces.into_iter().find(|trace| trace.status != 409).expect("it goes on for ever")
        });
        // A recording that goes on refuses another, which says that it has begun.
        let end = Instant::now() + Duration::from_secs(20);
        while served.admin("/trace?seconds=0.001").status != 409 && Instant::now() < end {}
        for _ in 0..SENT {
            served.post("/v2/models/identity/infer", &identity_request(2));
        }
        tracing.join().expect("it is answered")
    });
    assert_eq!(trace.status, 200);
    let trace = trace.json();
    let events = trace["traceEvents"].as_array().expect("it is a list");
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    let launches = of("X");
    assert!(launches.iter().all(|launch| launch["name"] == IDENTITY));
    let rows: u64 = launches.iter().map(|it| it["args"]["batch"].as_u64().expect("rows")).sum();
    assert_eq!(rows, 2 * SENT as u64);
    for launch in &launches {
        assert!(launch["dur"].as_f64() > Some(0.0) && launch["ts"].as_f64() >= Some(0.0));
        assert!(launch["args"]["expected_us"].as_f64() > Some(0.0));
        let named = of("M")
            .into_iter()
            .any(|track| track["tid"] == launch["tid"] && track["name"] == "thread_name");
        assert!(named, "{launch}");
    }
    assert!(of("C").iter().any(|counter| counter["name"] == "queue of identity"));
}

#[test]
fn what_is_asked_for_wrongly_is_told() {
    let served = start();
    assert_eq!(served.admin("/health").status, 200);
    for (method, path, status) in [
        ("GET", "/", 404),
        ("GET", "/v2/models/identity", 404),
        ("POST", "/metrics", 405),
        ("GET", "/trace?seconds=1e9", 400),
        ("GET", "/trace?minutes=1", 400),
    ] {
        let answer = served.admin_with(method, path, "");
        assert_eq!(answer.status, status, "{method} {path}");
        assert!(answer.json()["error"].is_string());
    }
    // It stays apart from what clients reach.
    assert_eq!(served.get("/metrics").status, 404);
    let mut stream = served.connect();
    stream.write_all(b"GET /status HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    assert_eq!(read_answer(&mut stream).status, 404);
}

#[test]
fn administration_takes_a_key_where_there_is_one() {
    let [administrator, other] = [(); 2].map(|()| generate_key().expect("there is chance"));
    let mut settings = Settings::default();
    settings.admin.key_hashes = vec![administrator.hash];
    let tenants = Arc::new(Tenants::new(&settings));
    let served = start_changed(None, |options| options.tenants = tenants);
    for path in ["/metrics", "/status", "/trace?seconds=0.01", "/health", "/nowhere"] {
        let with = |headers: &str| served.admin_with("GET", path, headers).status;
        assert_eq!(with(""), 401, "{path}");
        assert_eq!(with(&format!("authorization: Bearer {}\r\n", other.key)), 401, "{path}");
        let status = with(&format!("authorization: Bearer {}\r\n", administrator.key));
        assert_eq!(status, if path == "/nowhere" { 404 } else { 200 }, "{path}");
    }
}
