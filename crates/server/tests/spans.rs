//! Spans of requests, as a collector of OpenTelemetry receives them.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use support::{Served, identity_request, start_changed};

const PATIENCE: Duration = Duration::from_secs(20);

/// A collector that accepts everything, or nothing; and what it was sent.
fn collector(status: &'static str) -> (String, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let endpoint = format!("http://{}", listener.local_addr().expect("it has one"));
    let (sender, received) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let mut head = Vec::new();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("it is text");
                if line == "\r\n" {
                    break;
                }
                head.push(line.to_ascii_lowercase());
            }
            let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.expect("it is told").trim().parse().expect("a number");
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("it is sent");
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}");
            reader.get_mut().write_all(answer.as_bytes()).expect("it is read");
            let document = serde_json::from_slice(&body).expect("it is JSON");
            if sender.send((head.remove(0), document)).is_err() {
                return;
            }
        }
    });
    (endpoint, received)
}

fn start_sending_to(endpoint: &str) -> Served {
    start_changed(None, |options| options.otlp_endpoint = Some(endpoint.into()))
}

fn spans(document: &Value) -> Vec<Value> {
    document["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("a list").clone()
}

/// Nanoseconds since 1970 at the beginning and the end of a span.
fn interval(span: &Value) -> (u128, u128) {
    let at = |field: &str| span[field].as_str().expect("a text").parse().expect("a number");
    (at("startTimeUnixNano"), at("endTimeUnixNano"))
}

#[test]
fn a_request_is_a_span_of_its_clients_trace_with_its_queue_and_execution() {
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const PARENT: &str = "b7ad6b7169203331";
    let (endpoint, received) = collector("200 OK");
    let served = start_sending_to(&endpoint);
    let post = |traceparent: &str, body: &str| {
        let headers = [("traceparent", traceparent)];
        served.post_with("/v2/models/identity/infer", &headers, body.as_bytes()).status
    };
    assert_eq!(post(&format!("00-{TRACE}-{PARENT}-01"), &identity_request(1)), 200);
    // One whose client does not record it is not recorded here.
    assert_eq!(post(&format!("00-{TRACE}-{PARENT}-00"), &identity_request(1)), 200);
    // Without a trace of the client's it begins one.
    assert_eq!(post("", r#"{"inputs":[]}"#), 400);
    drop(served);

    let mut all = Vec::new();
    while let Ok((head, document)) = received.recv_timeout(Duration::from_millis(200)) {
        assert_eq!(head, "post /v1/traces http/1.1\r\n");
        all.extend(spans(&document));
    }
    let named = |name: &str| all.iter().filter(|span| span["name"] == name).collect::<Vec<_>>();
    assert_eq!((all.len(), named("infer identity").len()), (4, 2));
    let (queue, execution) = (named("queue")[0], named("execution")[0]);
    let (of_client, others): (Vec<&Value>, Vec<&Value>) =
        all.iter().partition(|span| span["traceId"] == TRACE);
    assert_eq!((of_client.len(), others.len()), (3, 1));
    let request = of_client[0];
    assert_eq!((&request["parentSpanId"], &request["kind"]), (&PARENT.into(), &2.into()));
    assert_eq!(request["status"]["code"], 1);
    for part in [queue, execution] {
        assert_eq!(part["parentSpanId"], request["spanId"]);
        let (whole, part) = (interval(request), interval(part));
        assert!(whole.0 <= part.0 && part.0 <= part.1 && part.1 <= whole.1);
    }
    assert_eq!(interval(queue).1, interval(execution).0);
    assert_eq!(execution["attributes"][0]["value"]["intValue"], "1");
    let refused = others[0];
    assert_eq!((&refused["status"]["code"], refused.get("parentSpanId")), (&2.into(), None));
    assert_eq!(refused["attributes"][1]["value"]["stringValue"], "wrong_tensors");
}

#[test]
fn a_collector_that_refuses_costs_its_spans_and_nothing_else() {
    let (endpoint, received) = collector("503 Service Unavailable");
    let served = start_sending_to(&endpoint);
    let answer = served.post("/v2/models/identity/infer", &identity_request(1));
    assert_eq!(answer.status, 200);
    received.recv_timeout(PATIENCE).expect("it is tried");
    let counted = || {
        let page = String::from_utf8(served.admin("/metrics").body).expect("it is text");
        page.contains("weft_spans_total{fate=\"dropped\"} 1\n")
    };
    // The count follows the answer of the collector.
    let end = std::time::Instant::now() + PATIENCE;
    while !counted() && std::time::Instant::now() < end {
        thread::yield_now();
    }
    assert!(counted());
}
