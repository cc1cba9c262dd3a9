//! All threads of the generator in one run: they begin together, and what comes of them is one outcome.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use crate::error::LoadError;
use crate::generator::Progress;
use crate::lane::{Lane, Line, Part, Signal};
use crate::outcome::Outcome;

/// How often it is told how far a run is.
const WATCHED_EVERY: Duration = Duration::from_secs(1);

/// What a thread gives back when it has ended.
type Ended = (Lane, Result<Outcome, LoadError>);

/// Lanes on their way.
struct Crew {
    signal: watch::Sender<Signal>,
    ready: Vec<oneshot::Receiver<()>>,
    ended: Vec<oneshot::Receiver<Ended>>,
    progress: Vec<Arc<Mutex<Progress>>>,
}

/// Has each lane do its part of a run on a thread of its own. `watch` is told once a second how far it is; when `stop`
/// returns, the run ends there.
pub(crate) async fn run(
    lanes: &mut Vec<Lane>,
    parts: Vec<Part>,
    watch: &mut dyn FnMut(&Progress),
    stop: &mut impl AsyncFnMut(),
) -> Result<Outcome, LoadError> {
    let Crew { signal, ready, ended, progress } = Crew::start(std::mem::take(lanes), parts);
    let mut every = tokio::time::interval(WATCHED_EVERY);
    let mut watching = std::pin::pin!(async {
        loop {
            every.tick().await;
            watch(&Progress::of_all(&progress));
        }
    });
    let mut working = std::pin::pin!(finish(&signal, ready, ended));
    let mut outcomes = None;
    for next in [Signal::Stop, Signal::GiveUp] {
        tokio::select! {
            biased;
            all = &mut working => outcomes = Some(all),
            () = stop() => {
                signal.send_replace(next);
            }
            () = &mut watching => {}
        }
        if outcomes.is_some() {
            break;
        }
    }
    let outcomes = match outcomes {
        Some(outcomes) => outcomes,
        None => working.await,
    };
    let mut whole: Option<Outcome> = None;
    let mut failed = None;
    for (lane, outcome) in outcomes {
        lanes.push(lane);
        match (outcome, &mut whole) {
            (Ok(outcome), Some(whole)) => whole.merge(outcome),
            (Ok(outcome), None) => whole = Some(outcome),
            (Err(error), _) => failed = Some(error),
        }
    }
    match failed {
        Some(error) => Err(error),
        None => Ok(whole.expect("there is at least one lane")),
    }
}

impl Crew {
    fn start(lanes: Vec<Lane>, parts: Vec<Part>) -> Self {
        let (signal, told) = watch::channel(Signal::Connect);
        let (mut ready, mut ended, mut progress) = (Vec::new(), Vec::new(), Vec::new());
        for (mut lane, part) in lanes.into_iter().zip(parts) {
            let (is_ready, becomes_ready) = oneshot::channel();
            let (has_ended, ends) = oneshot::channel();
            let far = Arc::new(Mutex::new(Progress::default()));
            let line = Line { signal: told.clone(), is_ready, progress: far.clone() };
            std::thread::spawn(move || {
                let outcome = lane.run(part, line);
                // Where nobody waits for it, the run was given up with all that it had.
                let _ = has_ended.send((lane, outcome));
            });
            ready.push(becomes_ready);
            ended.push(ends);
            progress.push(far);
        }
        Self { signal, ready, ended, progress }
    }
}

/// Lets all lanes begin when each is ready, and waits for their ends.
async fn finish(
    signal: &watch::Sender<Signal>,
    ready: Vec<oneshot::Receiver<()>>,
    ended: Vec<oneshot::Receiver<Ended>>,
) -> Vec<Ended> {
    let mut are_ready = true;
    for ready in ready {
        are_ready &= ready.await.is_ok();
    }
    // One that cannot connect says so at its end, and the others need not begin.
    let next = if are_ready { Signal::Start(Instant::now()) } else { Signal::GiveUp };
    signal.send_if_modified(|signal| {
        let is_first = *signal == Signal::Connect;
        if is_first {
            *signal = next;
        }
        is_first
    });
    let mut all = Vec::with_capacity(ended.len());
    for ended in ended {
        all.push(ended.await.expect("a lane ends, or its panic is this one's"));
    }
    all
}
