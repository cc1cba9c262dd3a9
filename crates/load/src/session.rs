//! A server and the models that are asked for, ready for any number of runs.

use std::ops::Range;
use std::sync::Arc;

use weft_scheduler::Span;
use weft_simulator::{Clients, Load};

use crate::answer_check::AnswerCheck;
use crate::connection;
use crate::crew;
use crate::error::LoadError;
use crate::generator::Progress;
use crate::lane::{Lane, Part};
use crate::model_load::ModelLoad;
use crate::outcome::Outcome;
use crate::prepare;
use crate::prepared::PreparedModel;
use crate::recorder::Recorder;
use crate::schedule;
use crate::shared_memory::{MAX_SLOTS, Registration};
use crate::target::Target;

/// The most requests that wait for a connection, in all threads together.
const MAX_WAITING: usize = 100_000;

/// How requests are made and sent, in all runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionOptions {
    /// The most connections; where all are busy, requests wait, and their latency counts on.
    pub connections: usize,
    /// The most threads that send them, each with connections of its own: no more than there are connections.
    pub threads: usize,
    /// What inputs are drawn from.
    pub seed: u64,
    /// How answers are checked.
    pub check: AnswerCheck,
    /// Tensors are in memory that is shared with the server, which is on this machine, and messages say where.
    pub shared_memory: bool,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunOptions {
    /// How long requests come that count.
    pub length: Span,
    /// How long requests come before, which do not.
    pub warm_up: Span,
    /// What arrivals are drawn from.
    pub seed: u64,
    /// What rates are multiplied with; clients are as many as they are.
    pub factor: f64,
}

/// A server, the requests for it, and threads with connections to it.
pub struct Session {
    models: Vec<ModelLoad>,
    prepared: Arc<[PreparedModel]>,
    lanes: Vec<Lane>,
    /// Memory that requests name, which the server forgets with the session.
    _registration: Option<Registration>,
}

impl Session {
    /// Asks the server about the models, makes their requests, and tries one of each: what a server cannot do is found
    /// here, and not counted as load.
    pub async fn open(
        target: Target,
        models: Vec<ModelLoad>,
        options: SessionOptions,
    ) -> Result<Self, LoadError> {
        let target = Arc::new(target);
        let at_a_time = connection::requests_at_a_time(target.protocol);
        let limit = if options.shared_memory { MAX_SLOTS / at_a_time } else { usize::MAX };
        let connections = options.connections.clamp(1, limit);
        let prepared =
            prepare::prepare(&target, &models, &options, connections * at_a_time).await?;
        let lanes = shares(connections, options.threads.clamp(1, connections))
            .map(|share| Lane::new(target.clone(), share.start * at_a_time..share.end * at_a_time));
        Ok(Self {
            models,
            prepared: prepared.models.into(),
            lanes: lanes.collect::<Result<_, _>>()?,
            _registration: prepared.registration,
        })
    }

    /// Sends requests at the instants they are due. `watch` is told once a second how far it is; when `stop` returns, the
    /// run ends there.
    pub async fn run(
        &mut self,
        run: &RunOptions,
        watch: &mut dyn FnMut(&Progress),
        stop: &mut impl AsyncFnMut(),
    ) -> Result<Outcome, LoadError> {
        let loads: Vec<Load> =
            self.models.iter().map(|model| scaled(&model.load, run.factor)).collect();
        let drawn = schedule::draw(&loads, run.warm_up + run.length, run.seed)?;
        let lanes = self.lanes.len();
        let part = |(lane, drawn)| Part {
            models: self.prepared.clone(),
            clients: clients_of(&loads, run.seed, lane, lanes),
            drawn,
            recorder: Recorder::new(&self.models, run.warm_up, run.length),
            max_waiting: MAX_WAITING / lanes,
        };
        let parts = schedule::deal(drawn, lanes).into_iter().enumerate().map(part).collect();
        crew::run(&mut self.lanes, parts, watch, stop).await
    }
}

/// So many in shares that differ by at most one, one after the other.
fn shares(count: usize, shares: usize) -> impl Iterator<Item = Range<usize>> {
    (0..shares).map(move |share| count * share / shares..count * (share + 1) / shares)
}

/// The clients of a lane, by model. They are dealt out in turns, beginning with another lane for each model.
fn clients_of(loads: &[Load], seed: u64, lane: usize, lanes: usize) -> Vec<Option<Clients>> {
    let of_model = |(model, load): (u32, &Load)| match *load {
        Load::ClosedLoop { clients, think } => {
            let lanes_before = (lane + lanes - model as usize % lanes) % lanes;
            let count = (clients as usize + lanes - 1 - lanes_before) / lanes;
            // Other clients think for other times.
            let seed = seed.wrapping_add((lane as u64) << 32);
            Some(Clients::new(count as u32, think, seed, model))
        }
        _ => None,
    };
    (0..).zip(loads).map(of_model).collect()
}

fn scaled(load: &Load, factor: f64) -> Load {
    match load {
        Load::ClosedLoop { .. } => load.clone(),
        _ => load.scaled(factor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_and_clients_are_all_dealt_out() {
        for lanes in 1..6 {
            let dealt: Vec<Range<usize>> = shares(17, lanes).collect();
            assert_eq!((dealt[0].start, dealt[lanes - 1].end), (0, 17));
            assert!(dealt.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(
                dealt
                    .iter()
                    .all(|share| (17 / lanes..=17_usize.div_ceil(lanes)).contains(&share.len()))
            );
            let load = |clients| Load::ClosedLoop { clients, think: Span::ZERO };
            let loads = [load(1), load(1), load(7), Load::Poisson { rate_per_s: 1.0 }];
            let mut counts = [[0; 3]; 6];
            for (lane, counts) in counts.iter_mut().enumerate().take(lanes) {
                let mut clients = clients_of(&loads, 1, lane, lanes);
                assert!(clients[3].is_none());
                let begin = |clients: &mut Option<Clients>| clients.as_mut().unwrap().begin().len();
                *counts = [0, 1, 2].map(|model| begin(&mut clients[model]));
            }
            let all = |model: usize| counts.iter().map(|lane| lane[model]).sum::<usize>();
            assert_eq!([all(0), all(1), all(2)], [1, 1, 7], "{lanes} lanes");
            assert!(lanes == 1 || counts[0][0] + counts[0][1] == 1, "not all begin with the first");
        }
    }
}
