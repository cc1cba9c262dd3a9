//! Every endpoint over HTTP, asked by a plain client.

mod support;

use std::io::Write;

use serde_json::json;
use support::{IDENTITY, NETWORK, identity_request, read_answer, start};

#[test]
fn the_server_and_its_models_say_what_they_are() {
    let served = start();
    assert_eq!(served.get("/v2/health/live").status, 200);
    assert_eq!(served.get("/v2/health/ready").status, 200);
    assert_eq!(served.get("/v2/models/identity/ready").status, 200);
    assert_eq!(served.get("/v2/models/identity/versions/1/ready").status, 200);
    assert_eq!(served.get("/v2/models/unheard/ready").status, 404);
    let server = served.get("/v2").json();
    assert_eq!(server["name"], "weft");
    let model = served.get("/v2/models/identity").json();
    assert_eq!(
        model,
        json!({
            "name": IDENTITY, "versions": ["1"], "platform": "weft_onnx",
            "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 16]}],
            "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 16]}],
        })
    );
    let config = served.get("/v2/models/identity/config").json();
    assert_eq!(config["max_batch_size"], support::MAX_BATCH);
    assert_eq!(config["input"][0]["dims"], json!([16]));
    assert_eq!(config["input"][0]["data_type"], "TYPE_FP32");
    assert!(served.get("/openapi.json").json()["paths"].is_object());
}

#[test]
fn inference_answers_in_json_and_counts() {
    let served = start();
    let answer = served.post("/v2/models/identity/infer", &identity_request(3));
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    let answer = answer.json();
    assert_eq!(answer["id"], "7");
    assert_eq!(answer["model_version"], "1");
    assert_eq!(answer["outputs"][0]["shape"], json!([3, 16]));
    assert_eq!(answer["outputs"][0]["data"][47], 47.5);

    served.post("/v2/models/identity/infer", r#"{"inputs":[]}"#);
    let counted = served.get("/v2/models/identity/stats").json();
    let counted = &counted["model_stats"][0];
    assert_eq!(counted["inference_count"], 3);
    assert_eq!(counted["inference_stats"]["success"]["count"], 1);
    assert_eq!(counted["inference_stats"]["fail"]["count"], 1);
    assert!(counted["execution_count"].as_u64() >= Some(1));
    assert_eq!(served.get("/v2/models/stats").json()["model_stats"].as_array().unwrap().len(), 2);
}

#[test]
fn one_connection_carries_many_requests() {
    let served = start();
    let body = identity_request(1);
    let mut stream = served.connect();
    for last in [false, false, true] {
        let close = if last { "connection: close\r\n" } else { "" };
        let length = body.len();
        let head = format!(
            "POST /v2/models/identity/infer HTTP/1.1\r\nhost: x\r\n{close}content-length: {length}\r\n\r\n"
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
    }
    let answers = read_answer(&mut stream);
    let text = String::from_utf8_lossy(&answers.body);
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 2, "{text}");
}

#[test]
fn outputs_are_classified_on_request() {
    let served = start();
    let mut request: serde_json::Value = serde_json::from_str(&identity_request(2)).unwrap();
    request["outputs"] = json!([{"name": "y", "parameters": {"classification": 2}}]);
    let answer = served.post("/v2/models/identity/infer", &request.to_string()).json();
    assert_eq!(answer["outputs"][0]["datatype"], "BYTES");
    assert_eq!(answer["outputs"][0]["shape"], json!([2, 2]));
    assert_eq!(answer["outputs"][0]["data"][2], "31.500000:15");
}

#[test]
fn models_are_put_out_and_brought_back() {
    let served = start();
    let index = served.post("/v2/repository/index", "").json();
    assert_eq!(index[0]["name"], IDENTITY);
    assert_eq!(index[1]["state"], "READY");
    assert_eq!(served.post("/v2/repository/models/identity/unload", "{}").status, 200);
    assert_eq!(served.get("/v2/models/identity/ready").status, 404);
    assert_eq!(served.post("/v2/models/identity/infer", &identity_request(1)).status, 404);
    let ready = served.post("/v2/repository/index", r#"{"ready":true}"#).json();
    assert_eq!(ready.as_array().unwrap().len(), 1);
    assert_eq!(ready[0]["name"], NETWORK);
    assert_eq!(served.post("/v2/repository/models/identity/load", "").status, 200);
    assert_eq!(served.post("/v2/models/identity/infer", &identity_request(1)).status, 200);
    assert_eq!(served.post("/v2/repository/models/unheard/load", "").status, 404);
    let config = r#"{"parameters":{"config":"{}"}}"#;
    assert_eq!(served.post("/v2/repository/models/identity/load", config).status, 501);
}

#[test]
fn what_is_not_offered_says_so() {
    let served = start();
    for path in ["/v2/trace/setting", "/v2/logging"] {
        assert_eq!(served.get(path).status, 501, "{path}");
    }
    let register = served.post("/v2/cudasharedmemory/region/a/register", "{}");
    assert_eq!((register.status, register.reason()), (501, "unsupported".into()));
    assert_eq!(served.get("/v2/cudasharedmemory/status").json(), json!([]));
    assert_eq!(served.post("/v2/cudasharedmemory/unregister", "").status, 200);
    let wrong = served.get("/v2/models/identity/infer");
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("POST")));
    assert_eq!(served.get("/v2/nothing").reason(), "unknown_path");
}

#[test]
fn a_server_that_stops_is_not_ready_and_ends_well() {
    let served = start();
    let mut idle = served.connect();
    assert_eq!(served.post("/v2/models/identity/infer", &identity_request(1)).status, 200);
    assert!(served.server.stop());
    // The connection was closed, and nobody listens.
    let mut rest = Vec::new();
    assert_eq!(std::io::Read::read_to_end(&mut idle, &mut rest).unwrap_or(0), 0);
}
