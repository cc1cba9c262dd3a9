//! Who is taken in, and where: requests go to the lane in which they cost the least, and those of one call all or none.

use crate::lane::{LaneBefore, Prospect};
use crate::policy::{Action, Refusal};
use crate::request::Request;
use crate::serving::Serving;
use crate::time::{Span, Time};

/// Requests of a call that one lane has taken in.
struct TakenIn {
    place: usize,
    /// What the lane was before them, and what was said of each; nothing where the call is of one request, so that nothing is taken
    /// back.
    before: Option<LaneBefore>,
    prospects: Vec<Prospect>,
}

impl Serving {
    /// Takes in requests of one model that came together, all or none, and runs what can run; counts those that are refused,
    /// unless it is evicted.
    pub fn arrive(&mut self, requests: &[Request], now: Time, actions: &mut Vec<Action>) -> u32 {
        match self.take_in(requests, now, actions) {
            Ok(taken) => {
                for request in requests {
                    self.stragglers.accepted(request.model, now);
                }
                taken.into_iter().for_each(|taken| self.launch(taken.place, now, actions));
                0
            }
            Err(why) => {
                let refuse = |request: &Request| Action::Refuse { request: request.id, why };
                actions.extend(requests.iter().map(refuse));
                let counts = |request: &&Request| !self.is_evicted(request.model, now);
                requests.iter().filter(counts).count() as u32
            }
        }
    }

    /// Puts each request into the lane where it costs the least; where that is too late, it is too late everywhere. What was put
    /// there is taken back where one is refused: nobody would wait for the answers to the others.
    fn take_in(
        &mut self,
        requests: &[Request],
        now: Time,
        actions: &mut Vec<Action>,
    ) -> Result<Vec<TakenIn>, Refusal> {
        let mut all_taken: Vec<TakenIn> = Vec::new();
        let may_be_taken_back = requests.len() > 1;
        for &request in requests {
            let Some((prospect, place)) = self.cheapest(&request, now) else {
                self.take_back(all_taken);
                return Err(Refusal::NotServed);
            };
            let served = &self.partitions[place];
            let latency = served.latencies.under(&self.conditions);
            if let Some(holder) = served.lane.held_up_by(&request, &prospect, now, &latency) {
                self.strike(holder, now, actions);
            }
            let lane = &mut self.partitions[place].lane;
            if let Err(why) = lane.judge(&request, &prospect) {
                let is_first = all_taken.is_empty();
                self.take_back(all_taken);
                let lane = &mut self.partitions[place].lane;
                let is_alone = is_first && lane.waiting() == 0 && lane.free_at(now) == now;
                if is_alone && let Some(tried) = self.doubt_refusal(requests, place, now) {
                    actions.push(Action::Try(request.id));
                    return Ok(vec![tried]);
                }
                let lane = &mut self.partitions[place].lane;
                requests.iter().for_each(|request| lane.decline(request, &prospect));
                return Err(why);
            }
            let taken = match all_taken.iter().position(|taken| taken.place == place) {
                Some(known) => &mut all_taken[known],
                None => {
                    let before = may_be_taken_back.then(|| lane.before());
                    all_taken.push(TakenIn { place, before, prospects: Vec::new() });
                    all_taken.last_mut().expect("it was put there")
                }
            };
            if may_be_taken_back {
                taken.prospects.push(prospect);
            }
            lane.accept(request, prospect);
        }
        Ok(all_taken)
    }

    fn take_back(&mut self, all_taken: Vec<TakenIn>) {
        for TakenIn { place, before, prospects } in all_taken {
            if let Some(before) = before {
                self.partitions[place].lane.take_back(before, &prospects);
            }
        }
    }

    /// A request is to be refused though nothing is before it: it is [tried](super::trials) all the same where it has all the time
    /// of the objective and its turn has come; where it has less, what was learned is doubted now and then.
    fn doubt_refusal(&mut self, requests: &[Request], place: usize, now: Time) -> Option<TakenIn> {
        let &request = requests.first()?;
        let index = self.conditions.index(request.model);
        let is_enough = self.conditions.certainties[index].observe_refused_alone();
        let slo = self.device.models[request.model.index()].slo.map(|slo| slo.latency);
        let has_all_its_time = slo <= Some(request.deadline.since(request.arrived));
        if requests.len() > 1 || !has_all_its_time || self.is_evicted(request.model, now) {
            if is_enough {
                self.latency.doubt(request.model);
                self.note_latency(request.model);
            }
            return None;
        }
        if !self.trials[index].is_next() {
            return None;
        }
        let request = Request { deadline: Time::NEVER, ..request };
        let served = &mut self.partitions[place];
        let latency = served.latencies.under(&self.conditions);
        let prospect = served.lane.prospect(&request, now, &latency)?;
        served.lane.judge(&request, &prospect).ok()?;
        served.lane.accept(request, prospect);
        Some(TakenIn { place, before: None, prospects: Vec::new() })
    }

    /// The lane in which a request costs the least, in units and the time that they are busy with it, among those that
    /// are predicted to answer it in time; where none is, the one that answers first. A small partition that is in time thus
    /// leaves a large one to those who need it, and a batch that is gathered anyway is joined.
    pub(super) fn cheapest(&self, request: &Request, now: Time) -> Option<(Prospect, usize)> {
        let is_apart = self.is_evicted(request.model, now);
        let prospect = |&place: &usize| {
            let served = &self.partitions[place];
            let latency = served.latencies.under(&self.conditions);
            let prospect = match is_apart {
                true => served.lane.prospect_apart(request, now, &latency),
                false => served.lane.prospect(request, now, &latency),
            };
            Some((prospect?, place))
        };
        let prospects = self.routes[request.model.index()].iter().filter_map(prospect);
        prospects.min_by_key(|&(prospect, place)| {
            let units = self.partitions[place].partition.units.len();
            let cost = prospect.added * f64::from(units);
            let is_late = prospect.claim > request.deadline;
            (is_late, if is_late { Span::ZERO } else { cost }, prospect.claim, place)
        })
    }
}
