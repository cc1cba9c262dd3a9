//! Runs whose tensors are in memory that is shared with the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use weft_load::{
    AnswerCheck, Dimensions, LoadError, ModelLoad, Outcome, Protocol, RunOptions, Session,
    SessionOptions, Target,
};
use weft_scheduler::Span;
use weft_simulator::Load;

use crate::scripted::{Act, MODEL, Server, Sharing};

const OPTIONS: SessionOptions = SessionOptions {
    connections: 8,
    threads: 1,
    seed: 1,
    check: AnswerCheck::Bits,
    shared_memory: true,
};
const PROTOCOLS: [Protocol; 2] = [Protocol::Http, Protocol::Grpc];

fn asked(load: Load) -> ModelLoad {
    ModelLoad {
        name: MODEL.into(),
        load,
        slo: None,
        timeout: None,
        dimensions: Dimensions::default(),
    }
}

fn at_rate(rate_per_s: f64) -> Load {
    Load::Gamma { rate_per_s, burstiness: 0.0 }
}

async fn open(protocol: Protocol, server: &Server, load: Load) -> Result<Session, LoadError> {
    open_with(1, protocol, server, load).await
}

async fn open_with(
    threads: usize,
    protocol: Protocol,
    server: &Server,
    load: Load,
) -> Result<Session, LoadError> {
    let target = Target::parse(&server.address.to_string(), Some(protocol))?;
    let options = SessionOptions { threads, ..OPTIONS };
    Session::open(target, vec![asked(load)], options).await
}

async fn run(session: &mut Session, seconds: f64) -> Outcome {
    let run =
        RunOptions { length: Span::from_s(seconds), warm_up: Span::ZERO, seed: 1, factor: 1.0 };
    session.run(&run, &mut |_| {}, &mut async || std::future::pending().await).await.unwrap()
}

#[tokio::test]
async fn answers_are_checked_where_they_were_written() {
    for protocol in PROTOCOLS {
        // What comes to find out how large outputs are, to try the memory and first of its kind is answered well.
        let act = |number: usize| match (number > 20, number % 10) {
            (true, 8) => Act::Garble,
            (true, 9) => Act::Shorten,
            _ => Act::Answer(Duration::ZERO),
        };
        let server = Server::sharing(Sharing::Here, act);
        let mut session = open(protocol, &server, at_rate(100.0)).await.unwrap();
        assert_eq!(server.regions.count(), 1);
        let outcome = run(&mut session, 1.005).await;
        let model = &outcome.models[0];
        assert_eq!((model.due, model.answered), (100, 84), "{protocol} {:?}", model.failed);
        let failed: Vec<(&str, u64)> =
            model.failed.iter().map(|(name, reason)| (name, reason.count)).collect();
        let expected =
            [("an answer of another size", 8), ("equal inputs with different outputs", 8)];
        assert_eq!(failed, expected, "{protocol}");
        assert_eq!(
            model.failed.iter().next().unwrap().1.example,
            "8 bytes of outputs instead of 16"
        );
        drop(session);
        assert_eq!(server.regions.count(), 0, "{protocol}");
    }
}

#[tokio::test]
async fn requests_that_were_given_up_leave_their_room_to_the_next_run() {
    for protocol in PROTOCOLS {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = asked.clone();
        let act = move |number: usize| {
            counted.store(number, Ordering::Relaxed);
            match number {
                10..14 => Act::Ignore,
                _ => Act::Answer(Duration::ZERO),
            }
        };
        let server = Server::sharing(Sharing::Here, act);
        let mut session = open(protocol, &server, at_rate(200.0)).await.unwrap();
        let options =
            RunOptions { length: Span::from_s(60.0), warm_up: Span::ZERO, seed: 1, factor: 1.0 };
        let mut last = 30;
        let mut stop = async || {
            while asked.load(Ordering::Relaxed) < last {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            // Once is enough: what is under way may end.
            last = usize::MAX;
        };
        let outcome = session.run(&options, &mut |_| {}, &mut stop).await.unwrap();
        assert!(outcome.is_interrupted);
        assert_eq!(outcome.models[0].failed.count(), 4, "{protocol}");
        let outcome = run(&mut session, 0.2).await;
        assert_eq!(outcome.models[0].answered, outcome.models[0].due, "{protocol}");
    }
}

#[tokio::test]
async fn servers_that_cannot_share_are_refused() {
    for protocol in PROTOCOLS {
        for (sharing, says) in [
            (Sharing::No, "does not offer the extension 'system_shared_memory'"),
            (Sharing::Elsewhere, "is it on this machine?"),
        ] {
            let server = Server::sharing(sharing, |_| Act::Answer(Duration::ZERO));
            let error = open(protocol, &server, at_rate(1.0)).await.err().unwrap();
            assert!(matches!(error, LoadError::SharedMemory { .. }), "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
        // The memory is known to the server by the time that a request fails.
        let act = |number| if number == 1 { Act::Refuse(400) } else { Act::Answer(Duration::ZERO) };
        let server = Server::sharing(Sharing::Here, act);
        assert!(open(protocol, &server, at_rate(1.0)).await.is_err());
        assert_eq!(server.regions.count(), 0);
    }
}

#[tokio::test]
async fn an_objective_that_does_not_hold_keeps_nobody_from_finding_out_sizes() {
    for protocol in PROTOCOLS {
        let server = Server::sharing(Sharing::Here, |_| Act::RefuseUrgent(504));
        let mut session = open(protocol, &server, at_rate(100.0)).await.unwrap();
        let outcome = run(&mut session, 0.1).await;
        let model = &outcome.models[0];
        assert_eq!((model.answered, model.refused.count()), (0, model.due), "{protocol}");
    }
}

/// What the server does with one request of many.
fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0u64..4).prop_map(|ms| Act::Answer(Duration::from_millis(ms))),
        1 => prop_oneof![Just(429), Just(504), Just(500), Just(400)].prop_map(Act::Refuse),
        1 => Just(Act::Shorten),
        1 => Just(Act::Garble),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// More clients than connections, so that each is used again at once, whatever became of its last request.
    #[test]
    fn no_two_requests_under_way_share_their_room_and_all_of_it_comes_back(
        acts in prop::collection::vec(act(), 20..60),
        clients in 9u32..30,
        threads in 1usize..4,
        is_grpc in any::<bool>(),
    ) {
        let protocol = PROTOCOLS[usize::from(is_grpc)];
        // What comes before the run must succeed.
        let script = move |number: usize| match number {
            0..2 => Act::Answer(Duration::ZERO),
            _ => acts[number % acts.len()],
        };
        let server = Server::sharing(Sharing::Here, script);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let load = Load::ClosedLoop { clients, think: Span::ZERO };
        let outcome = runtime.block_on(async {
            let mut session = open_with(threads, protocol, &server, load).await.unwrap();
            run(&mut session, 0.2).await
        });
        let model = &outcome.models[0];
        let ended = model.answered + model.refused.count() + model.failed.count();
        prop_assert_eq!(ended, model.due);
        prop_assert!(!model.failed.iter().any(|(name, _)| name == "no answer by the end"));
        let (places, shared) = server.regions.places();
        prop_assert_eq!(shared, 0, "two requests at one place");
        // The first, which was tried before the run, and those of the run.
        let at_a_time = if is_grpc { 1 + clients as usize } else { OPTIONS.connections };
        prop_assert!(places <= at_a_time, "{} places", places);
        prop_assert!(model.due as usize > places, "places were used again");
        prop_assert_eq!(server.regions.count(), 0);
        prop_assert_eq!(server.regions.names_left(), Vec::<String>::new());
    }
}
