//! Whole runs against a server that does as a script says.

mod scripted;
mod sharing;

use std::time::{Duration, Instant};

use scripted::{Act, MODEL, Server};
use weft_load::{
    AnswerCheck, CapacityOptions, Dimensions, LoadError, ModelLoad, Outcome, Protocol, RunOptions,
    Session, SessionOptions, Stopped, Target, find_capacity,
};
use weft_scheduler::Span;
use weft_simulator::Load;

const OPTIONS: SessionOptions = SessionOptions {
    connections: 16,
    threads: 1,
    seed: 1,
    check: AnswerCheck::Size,
    shared_memory: false,
};
const AT_ONCE: Act = Act::Answer(Duration::ZERO);

fn ms(ms: f64) -> Span {
    Span::from_us(ms * 1e3)
}

fn regular(rate_per_s: f64) -> Load {
    Load::Gamma { rate_per_s, burstiness: 0.0 }
}

fn asked(load: Load) -> ModelLoad {
    ModelLoad {
        name: MODEL.into(),
        load,
        slo: Some(ms(50.0)),
        timeout: None,
        dimensions: Dimensions::default(),
    }
}

fn run_for(seconds: f64) -> RunOptions {
    RunOptions { length: Span::from_s(seconds), warm_up: Span::ZERO, seed: 1, factor: 1.0 }
}

async fn open(
    server: &Server,
    models: Vec<ModelLoad>,
    options: SessionOptions,
) -> Result<Session, LoadError> {
    open_over(Protocol::Http, server, models, options).await
}

async fn open_over(
    protocol: Protocol,
    server: &Server,
    models: Vec<ModelLoad>,
    options: SessionOptions,
) -> Result<Session, LoadError> {
    let target = Target::parse(&server.address.to_string(), Some(protocol))?;
    Session::open(target, models, options).await
}

async fn never() {
    std::future::pending().await
}

async fn outcome_of(
    server: &Server,
    models: Vec<ModelLoad>,
    options: SessionOptions,
    run: RunOptions,
) -> Outcome {
    let mut session = open(server, models, options).await.unwrap();
    session.run(&run, &mut |_| {}, &mut never).await.unwrap()
}

#[tokio::test]
async fn a_stall_is_felt_by_all_who_came_in_it() {
    // One of the first requests stops the server for 300 ms, in which 60 more are due. With a single connection most of
    // them cannot even be sent in that time; they must count all the same.
    let stall = Duration::from_millis(300);
    for connections in [64, 1] {
        let act = move |number| if number == 50 { Act::Stall(stall) } else { AT_ONCE };
        let server = Server::start(act);
        let options = SessionOptions { connections, ..OPTIONS };
        let outcome = outcome_of(&server, vec![asked(regular(200.0))], options, run_for(1.0)).await;
        check_stalled(&outcome);
        assert_eq!(outcome.models[0].waited > 40, connections == 1, "{}", outcome.models[0].waited);
    }
}

/// Of 200 requests at equal gaps, those that came in the 300 ms of the stall waited for its end: 150 ms on average.
fn check_stalled(outcome: &Outcome) {
    let model = &outcome.models[0];
    assert_eq!((model.due, model.answered), (199, 199));
    let late = |limit: f64| {
        let shares = (0..=1000).map(|share| f64::from(share) / 1000.0);
        shares.filter(|&share| model.latencies.quantile(share) > ms(limit)).count() as f64 / 1000.0
    };
    // A client that waits for answers before it asks again would see one late request.
    for limit in [50.0, 100.0, 200.0] {
        let expected = (300.0 - limit) / 5.0 / 199.0;
        assert!((late(limit) - expected).abs() < 0.05, "{limit}: {} not {expected}", late(limit));
    }
    assert!(model.attainment().unwrap() < 0.8);
}

#[tokio::test]
async fn rates_are_hit_and_connections_are_used_again() {
    let server = Server::start(|_| AT_ONCE);
    let mut models = vec![asked(Load::Poisson { rate_per_s: 300.0 }), asked(regular(100.0))];
    models[0].slo = None;
    let run = RunOptions { warm_up: Span::from_s(0.3), ..run_for(1.5) };
    let before = Instant::now();
    let outcome = outcome_of(&server, models, OPTIONS, run).await;
    assert!(before.elapsed() < Duration::from_secs(5));
    let [random, constant] = &outcome.models[..] else { panic!("two models") };
    assert!((380..520).contains(&random.due), "{}", random.due);
    assert_eq!(constant.due, 150);
    assert!(outcome.models.iter().all(|model| model.answered == model.due && model.waited == 0));
    assert_eq!(random.attainment(), None);
    // The one that asked before the run, and those of the run.
    assert_eq!(server.connections(), 1 + OPTIONS.connections);
    assert!(outcome.generator_load > 0.0 && outcome.generator_load <= 1.0);
}

#[tokio::test]
async fn several_threads_send_what_one_would() {
    for protocol in [Protocol::Http, Protocol::Grpc] {
        let server =
            Server::start(|number| if number % 7 == 3 { Act::Refuse(429) } else { AT_ONCE });
        let clients = Load::ClosedLoop { clients: 3, think: ms(5.0) };
        let models = vec![asked(Load::Poisson { rate_per_s: 300.0 }), asked(clients)];
        let mut due = Vec::new();
        for threads in [1, 3, 8] {
            let options = SessionOptions { connections: 6, threads, ..OPTIONS };
            let mut session = open_over(protocol, &server, models.clone(), options).await.unwrap();
            for _ in 0..2 {
                let outcome = session.run(&run_for(0.4), &mut |_| {}, &mut never).await.unwrap();
                for model in &outcome.models {
                    assert_eq!(model.failed.count(), 0, "{threads} threads: {:?}", model.failed);
                    assert_eq!(model.answered + model.refused.count(), model.due);
                    let intervals = model.intervals.iter().map(|interval| interval.due);
                    assert_eq!(intervals.sum::<u64>(), model.due);
                }
                assert!(outcome.models[1].due > 0, "{threads} threads");
                due.push(outcome.models[0].due);
            }
        }
        assert!(due.iter().all(|&of| of == due[0]), "the same instants: {due:?}");
    }
}

#[tokio::test]
async fn clients_keep_so_many_requests_in_flight() {
    let time = Duration::from_millis(20);
    let server = Server::start(move |_| Act::Answer(time));
    let clients = Load::ClosedLoop { clients: 4, think: Span::ZERO };
    let models = vec![asked(clients), asked(regular(50.0))];
    let outcome = outcome_of(&server, models, OPTIONS, run_for(1.0)).await;
    // Four at a time, each 20 ms and some more, beside a load that waits for nobody.
    assert!((120..=200).contains(&outcome.models[0].answered), "{}", outcome.models[0].answered);
    assert!((45..=50).contains(&outcome.models[1].answered), "{}", outcome.models[1].answered);
}

#[tokio::test]
async fn what_is_refused_or_fails_is_counted_by_reason_and_is_not_in_time() {
    let act = |number: usize| match number % 5 {
        1 => Act::Refuse(429),
        2 => Act::Refuse(504),
        3 => Act::Refuse(500),
        4 => Act::Shorten,
        _ => AT_ONCE,
    };
    let server = Server::start(act);
    let outcome = outcome_of(&server, vec![asked(regular(100.0))], OPTIONS, run_for(1.005)).await;
    let model = &outcome.models[0];
    assert_eq!((model.due, model.sent, model.answered), (100, 100, 20));
    let refused: Vec<(&str, u64)> =
        model.refused.iter().map(|(name, reason)| (name, reason.count)).collect();
    assert_eq!(refused, [("429 Too Many Requests", 20), ("504 Gateway Timeout", 20)]);
    assert!(model.refused.iter().all(|(_, reason)| reason.example == "not now"));
    let failed: Vec<(&str, u64)> =
        model.failed.iter().map(|(name, reason)| (name, reason.count)).collect();
    assert_eq!(failed, [("500 Internal Server Error", 20), ("an answer of another size", 20)]);
    assert_eq!(outcome.attainment(), Some(0.2));
}

#[tokio::test]
async fn equal_inputs_must_have_equal_answers_where_that_is_checked() {
    for (check, failed) in [(AnswerCheck::Size, 0), (AnswerCheck::Bits, 1)] {
        let server = Server::start(|number| if number == 40 { Act::Garble } else { AT_ONCE });
        let options = SessionOptions { check, ..OPTIONS };
        let outcome = outcome_of(&server, vec![asked(regular(100.0))], options, run_for(0.6)).await;
        assert_eq!(outcome.models[0].failed.count(), failed);
    }
}

#[tokio::test]
async fn answers_in_json_are_answers_too() {
    let server = Server::start(|number| if number == 3 { Act::Text } else { AT_ONCE });
    let outcome = outcome_of(&server, vec![asked(regular(50.0))], OPTIONS, run_for(0.2)).await;
    assert_eq!(outcome.models[0].answered, outcome.models[0].due);
}

#[tokio::test]
async fn who_ends_a_run_has_its_report_at_once() {
    let server = Server::start(|number| if number == 20 { Act::Ignore } else { AT_ONCE });
    let mut session = open(&server, vec![asked(regular(100.0))], OPTIONS).await.unwrap();
    let before = Instant::now();
    let mut stop = async || tokio::time::sleep(Duration::from_millis(400)).await;
    let outcome = session.run(&run_for(60.0), &mut |_| {}, &mut stop).await.unwrap();
    assert!(before.elapsed() < Duration::from_secs(3));
    assert!(outcome.is_interrupted);
    assert!((30..=41).contains(&outcome.models[0].due), "{}", outcome.models[0].due);
    assert!((0.3..0.6).contains(&outcome.length.seconds()));
    let failed: Vec<(&str, u64)> =
        outcome.models[0].failed.iter().map(|(name, reason)| (name, reason.count)).collect();
    assert_eq!(failed, [("no answer by the end", 1)]);
}

#[tokio::test]
async fn what_the_server_cannot_do_is_found_before_the_run() {
    let server = Server::start(|_| Act::Refuse(400));
    let error = open(&server, vec![asked(regular(1.0))], OPTIONS).await.err().unwrap();
    assert!(error.to_string().contains("400 Bad Request: not now"), "{error}");
    let unknown = ModelLoad { name: "no/such".into(), ..asked(regular(1.0)) };
    let error = open(&server, vec![unknown], OPTIONS).await.err().unwrap();
    assert!(error.to_string().contains("404 Not Found: there is no such model"), "{error}");
    let nobody = Target::parse("127.0.0.1:1", None).unwrap();
    let error = Session::open(nobody, vec![asked(regular(1.0))], OPTIONS).await.err().unwrap();
    assert!(matches!(error, LoadError::Connection { .. }), "{error}");
}

#[tokio::test]
async fn the_most_load_of_a_server_is_found_with_its_bracket() {
    // One connection, 5 ms each: 200 a second, and objectives of 50 ms are kept to nearly all of it.
    let server = Server::start(|_| Act::Answer(Duration::from_millis(5)));
    let options = SessionOptions { connections: 1, ..OPTIONS };
    let mut session = open(&server, vec![asked(regular(60.0))], options).await.unwrap();
    let capacity = CapacityOptions { target: 0.99, precision: 0.3 };
    let mut search = async || {
        find_capacity(&mut session, &run_for(0.5), &capacity, &mut |_, _| {}, &mut never).await
    };
    let mut found = search().await.unwrap();
    // A machine that is busy otherwise holds the generator up, and a search that says so is searched again.
    for _ in 0..4 {
        if found.stopped == Some(Stopped::Generator) {
            found = search().await.unwrap();
        }
    }
    assert_eq!(found.stopped, None);
    let (best, beyond) = (found.best().unwrap(), found.least_too_much().unwrap());
    assert!(best.factor < beyond.factor && beyond.factor <= best.factor * 1.3);
    // The runtime's timers, which the server sleeps by, have whole milliseconds: each takes 5 to 7 ms.
    assert!((100.0..230.0).contains(&(best.factor * 60.0)), "{}", best.factor * 60.0);
}

#[tokio::test]
async fn all_of_it_goes_over_grpc_too() {
    let act = |number: usize| match number % 5 {
        1 => Act::Refuse(429),
        2 => Act::Refuse(504),
        3 => Act::Refuse(500),
        4 => Act::Garble,
        _ => Act::Answer(Duration::from_millis(3)),
    };
    let server = Server::start(act);
    // One connection carries many requests at a time.
    let options = SessionOptions { connections: 1, check: AnswerCheck::Bits, ..OPTIONS };
    let models = vec![asked(regular(400.0))];
    let mut session = open_over(Protocol::Grpc, &server, models, options).await.unwrap();
    let outcome = session.run(&run_for(0.501), &mut |_| {}, &mut never).await.unwrap();
    assert_eq!(server.connections(), 2);
    let model = &outcome.models[0];
    assert_eq!((model.due, model.sent, model.waited), (200, 200, 0));
    let refused: Vec<(&str, u64)> =
        model.refused.iter().map(|(name, reason)| (name, reason.count)).collect();
    assert_eq!(refused, [("DEADLINE_EXCEEDED", 40), ("RESOURCE_EXHAUSTED", 40)]);
    let failed: Vec<&str> = model.failed.iter().map(|(name, _)| name).collect();
    assert_eq!(failed, ["INTERNAL", "equal inputs with different outputs"]);
    let unknown = ModelLoad { name: "no/such".into(), ..asked(regular(1.0)) };
    let error = open_over(Protocol::Grpc, &server, vec![unknown], options).await.err().unwrap();
    assert!(error.to_string().contains("NOT_FOUND: there is no such model"), "{error}");
}
