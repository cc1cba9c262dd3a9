//! The threads that carry connections: a runtime for each, and connections dealt out to them in turn.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hyper_util::server::graceful::GracefulShutdown;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::connection::{Accepted, Connections};
use crate::inference::Serving;
use crate::listener::{Listening, accept};

/// How long connections have for the last bytes of their answers once every request has ended: clients that do not hang up
/// are not waited for.
const FAREWELL: Duration = Duration::from_secs(2);

/// Deals connections out to the threads in turn. What waits to be taken up is bounded by the connections that may be open.
#[derive(Clone)]
pub(crate) struct Dealer {
    threads: Vec<UnboundedSender<Accepted>>,
    next: usize,
}

impl Dealer {
    pub(crate) fn deal(&mut self, connection: Accepted) {
        self.next = (self.next + 1) % self.threads.len();
        // A thread that has ended closes what it is sent.
        let _ = self.threads[self.next].send(connection);
    }
}

/// The threads.
pub(crate) struct IoThreads {
    handles: Vec<JoinHandle<()>>,
    /// True while every request that was let in ended by itself.
    all_ended: Arc<AtomicBool>,
}

impl IoThreads {
    /// Starts them; the first also accepts.
    pub(crate) fn start(
        count: NonZeroUsize,
        listeners: Vec<Listening>,
        serving: Arc<Serving>,
        stopped: &watch::Receiver<bool>,
    ) -> std::io::Result<Self> {
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..count.get()).map(|_| unbounded_channel()).unzip();
        let dealer = Dealer { threads: senders, next: 0 };
        let mut started = Self { handles: Vec::new(), all_ended: Arc::new(AtomicBool::new(true)) };
        let mut listeners = Some(listeners);
        for (number, connections) in receivers.into_iter().enumerate() {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            for listening in listeners.take().into_iter().flatten() {
                runtime.spawn(accept(
                    listening,
                    dealer.clone(),
                    serving.room.clone(),
                    stopped.clone(),
                ));
            }
            if let Some(tls) = serving.tls.clone().filter(|_| number == 0) {
                runtime.spawn(tls.follow_files());
            }
            let (serving, stopped) = (serving.clone(), stopped.clone());
            let all_ended = started.all_ended.clone();
            let carry = move || {
                if !carry(&runtime, connections, serving, stopped) {
                    all_ended.store(false, Ordering::Relaxed);
                }
            };
            let name = format!("weft-io-{number}");
            started.handles.push(thread::Builder::new().name(name).spawn(carry)?);
        }
        Ok(started)
    }

    /// Waits until all have ended, and says whether every request ended by itself.
    pub(crate) fn join(&mut self) -> bool {
        for handle in self.handles.drain(..) {
            let _ = handle.join();
        }
        self.all_ended.load(Ordering::Relaxed)
    }
}

/// Carries connections until it is told to stop, then gives those that are busy the time they are allowed. True where every
/// request that was let in has ended.
fn carry(
    runtime: &Runtime,
    mut incoming: UnboundedReceiver<Accepted>,
    serving: Arc<Serving>,
    mut stopped: watch::Receiver<bool>,
) -> bool {
    let (drain, door) = (serving.limits.drain, serving.door.clone());
    let connections = Connections::new(serving, stopped.clone());
    runtime.block_on(async {
        let graceful = GracefulShutdown::new();
        loop {
            tokio::select! {
                Some(accepted) = incoming.recv() => connections.serve(accepted, &graceful),
                _ = stopped.wait_for(|is_stopped| *is_stopped) => break,
            }
        }
        let ended = async {
            door.emptied().await;
            sleep(FAREWELL).await;
        };
        tokio::select! {
            () = graceful.shutdown() => {}
            () = ended => {}
            () = sleep(drain) => {}
        }
        door.is_empty()
    })
}
