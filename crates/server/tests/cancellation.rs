//! Whoever hangs up is not worked for.

mod support;

use std::io::Write;
use std::time::{Duration, Instant};

use support::{Served, read_answer, start_serving};
use weft_ir::{Attributes, DataType, Dimension, Graph, GraphBuilder, Tensor};
use weft_server::Limits;

const SLOW: &str = "slow";
const WIDTH: usize = 1024;
const STEPS: usize = 600;

/// A model that takes a while: many products, one after another.
fn slow() -> Graph {
    let mut builder = GraphBuilder::new(SLOW, 17);
    let rows = Dimension::Symbol("batch".into());
    let mut value = builder.symbolic_input("x", DataType::F32, &[rows, Dimension::Known(WIDTH)]);
    let matrix = Tensor::filled(vec![WIDTH, WIDTH], 1.0 / WIDTH as f32).expect("it is small");
    let matrix = builder.constant("matrix", matrix);
    for _ in 0..STEPS {
        value = builder.node("MatMul", &[value, matrix], Attributes::new());
    }
    builder.output("y", value);
    builder.finish().expect("it is whole")
}

fn request() -> String {
    let data = vec!["1"; WIDTH].join(",");
    let body = format!(
        r#"{{"inputs":[{{"name":"x","shape":[1,{WIDTH}],"datatype":"FP32","data":[{data}]}}]}}"#
    );
    format!(
        "POST /v2/models/{SLOW}/infer HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn counted(served: &Served) -> (u64, u64) {
    let counted = served.get(&format!("/v2/models/{SLOW}/stats")).json();
    let model = &counted["model_stats"][0];
    let count = |value: &serde_json::Value| value.as_u64().expect("it is a count");
    (count(&model["inference_stats"]["success"]["count"]), count(&model["execution_count"]))
}

#[test]
fn requests_of_clients_that_hang_up_are_not_run() {
    let served = start_serving(Limits::default(), Some((SLOW, slow())));
    let mut first = served.connect();
    first.write_all(request().as_bytes()).expect("it is connected");
    // The others come while the first runs, and are gone before it has ended.
    let key = served.table.find(SLOW, "").expect("it is served").key;
    let end = Instant::now() + Duration::from_secs(20);
    while served.engine.waiting(key) == 0 && Instant::now() < end {
        std::thread::yield_now();
    }
    for _ in 0..3 {
        let mut other = served.connect();
        other.write_all(request().as_bytes()).expect("it is connected");
    }
    assert_eq!(read_answer(&mut first).status, 200);
    // A last one comes after all that was not cancelled.
    let mut last = served.connect();
    last.write_all(request().as_bytes()).expect("it is connected");
    assert_eq!(read_answer(&mut last).status, 200);
    assert_eq!(counted(&served), (2, 2));
}
