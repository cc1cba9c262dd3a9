//! Requests that nobody should send: each is refused in its own words, and the server lives on.

mod support;

use std::io::Write;
use std::time::Duration;

use support::{identity_request, read_answer, start, start_with};
use weft_server::Limits;

const INFER: &str = "/v2/models/identity/infer";

#[test]
fn wrong_requests_are_refused_in_their_own_words() {
    let served = start();
    let input = |fields: &str| format!(r#"{{"inputs":[{{"name":"x",{fields}}}]}}"#);
    let floats = vec!["1"; 16].join(",");
    for (body, reason) in [
        (String::new(), "malformed_request"),
        ("{".into(), "malformed_request"),
        ("[]".into(), "malformed_request"),
        ("{}".into(), "malformed_request"),
        (r#"{"inputs":[]}"#.into(), "wrong_tensors"),
        (input(r#""shape":[1,16],"datatype":"FP32""#), "malformed_request"),
        (input(r#""shape":[1,16],"datatype":"FP99","data":[1]"#), "malformed_request"),
        (input(r#""shape":[1,-16],"datatype":"FP32","data":[1]"#), "malformed_request"),
        (input(r#""shape":[1,16],"datatype":"FP32","data":[NaN]"#), "malformed_request"),
        (input(r#""shape":[1,16],"datatype":"FP32","data":["a"]"#), "malformed_request"),
        (
            input(r#""shape":[9223372036854775807,16],"datatype":"FP32","data":[]"#),
            "malformed_request",
        ),
        (input(&format!(r#""shape":[16],"datatype":"FP32","data":[{floats}]"#)), "wrong_tensors"),
        (
            input(&format!(r#""shape":[1,16],"datatype":"INT32","data":[{floats}]"#)),
            "wrong_tensors",
        ),
        (identity_request(100), "wrong_tensors"),
        (identity_request(1).replace("\"x\"", "\"z\""), "wrong_tensors"),
        ("[".repeat(100_000), "malformed_request"),
    ] {
        let answer = served.post(INFER, &body);
        let start: String = body.chars().take(60).collect();
        assert_eq!((answer.status, answer.reason().as_str()), (400, reason), "{start}");
    }
    assert_eq!(served.post("/v2/models/unheard/infer", "{}").reason(), "unknown_model");
    assert_eq!(served.post("/v2/models/identity/versions/9/infer", "{}").status, 404);
    assert_eq!(served.post(INFER, &identity_request(1)).status, 200);
}

#[test]
fn wrong_lengths_of_headers_are_refused() {
    let served = start();
    let body = identity_request(1);
    for length in ["-1", "x", "", "99999999999999999999", "1000000"] {
        let headers = [("inference-header-content-length", length)];
        let answer = served.post_with(INFER, &headers, body.as_bytes());
        assert_eq!(answer.reason(), "malformed_request", "{length}");
    }
}

#[test]
fn bodies_past_the_limit_are_refused_before_they_are_read() {
    let served = start_with(Limits { body_bytes: 1000, ..Limits::default() });
    let stated = format!("POST {INFER} HTTP/1.1\r\nhost: x\r\ncontent-length: 5000000000\r\n\r\n");
    let answer = served.send(&stated, b"{");
    assert_eq!((answer.status, answer.reason()), (413, "body_too_large".into()));
    let mut chunks =
        format!("POST {INFER} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    for _ in 0..100 {
        chunks.push_str("40\r\n");
        chunks.push_str(&" ".repeat(64));
        chunks.push_str("\r\n");
    }
    assert_eq!(served.send(&chunks, b"").status, 413);
    assert_eq!(served.post(INFER, &identity_request(1)).status, 200);
}

#[test]
fn slow_and_half_sent_bodies_do_not_wait_forever() {
    let limits = Limits { body_arrival: Duration::from_millis(100), ..Limits::default() };
    let served = start_with(limits);
    let half = format!("POST {INFER} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{{");
    let mut stream = served.connect();
    stream.write_all(half.as_bytes()).unwrap();
    let answer = read_answer(&mut stream);
    assert_eq!((answer.status, answer.reason()), (408, "body_too_slow".into()));
    assert_eq!(served.post(INFER, &identity_request(1)).status, 200);
}

#[test]
fn connections_too_many_are_told_so() {
    let served = start_with(Limits { connections: 2, ..Limits::default() });
    let held = [served.connect(), served.connect()];
    let mut third = served.connect();
    assert_eq!(read_answer(&mut third).status, 503);
    drop(held);
}

#[test]
fn garbage_is_no_request() {
    let served = start();
    for garbage in
        [&b"\0\xff\xfe\r\n\r\n"[..], b"GET\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\ngarbage!"]
    {
        let mut stream = served.connect();
        stream.write_all(garbage).unwrap();
        let mut rest = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut rest);
    }
    let long = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(200_000));
    let mut stream = served.connect();
    let _ = stream.write_all(long.as_bytes());
    let mut rest = Vec::new();
    let _ = std::io::Read::read_to_end(&mut stream, &mut rest);
    assert_eq!(served.post(INFER, &identity_request(1)).status, 200);
}
