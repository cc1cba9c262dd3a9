//! Members of groups that hold the others up: who they are, and until when they are served apart.
//!
//! # The rule
//!
//! A member gets a *strike* for each request of another member that its late requests keep out of a batch (see
//! [`Lane::held_up_by`](crate::Lane::held_up_by)), and for each launch in which requests of its that were accepted miss
//! their deadline. Who gets [`LEAST_STRIKES`] within a window, for at least [`STRIKE_SHARE`] of its requests, and
//! [`MUCH_MORE`] times as many for a request as the others of its group, is a straggler. It is evicted: its requests are
//! served apart, only where a lane has nothing else to do.
//!
//! So nobody is evicted where all are late or all miss, since then nobody has more strikes than the others; nor for sending
//! much, since refusals are no strikes; nor where late requests keep nobody out, since there is time enough.
//!
//! An eviction ends by itself. It lasts for one window, and twice as long each further time, up to a limit, unless a
//! member was good between two evictions for as long as the first of them.

use crate::identity::{GroupId, ModelId};
use crate::served::ServedDevice;
use crate::time::{Span, Time};

/// Strikes are counted for so many objectives.
const WINDOW_OBJECTIVES: f64 = 100.0;
/// Fewer strikes in a window are chance.
const LEAST_STRIKES: u32 = 10;
/// Strikes for each request that is accepted.
const STRIKE_SHARE: f64 = 0.1;
/// How many times as many strikes for each request as the others of its group have.
const MUCH_MORE: f64 = 4.0;
/// An eviction lasts for two to the power of this many windows at most.
const MOST_DOUBLINGS: u32 = 6;

/// How a member behaved in a window, and what came of it before.
#[derive(Clone, Copy, Debug)]
struct Conduct {
    group: Option<GroupId>,
    /// Requests that were accepted, and strikes, in the window.
    accepted: u32,
    strikes: u32,
    /// How long its last eviction was, and when it ended or ends.
    length: Span,
    evicted_until: Time,
}

/// A group's window.
#[derive(Clone, Copy, Debug)]
struct Window {
    group: GroupId,
    length: Span,
    begun: Time,
}

/// The conduct of all members of groups on a device.
#[derive(Clone, Debug)]
pub(super) struct Stragglers {
    /// By model.
    conduct: Vec<Conduct>,
    /// Of groups with an objective: without one nothing is late.
    windows: Vec<Window>,
}

impl Stragglers {
    pub(super) fn new(device: &ServedDevice) -> Self {
        let mut windows: Vec<Window> = Vec::new();
        for model in &device.models {
            if let (Some(group), Some(slo)) = (model.group, model.slo)
                && !windows.iter().any(|window| window.group == group)
            {
                let length = slo.latency * WINDOW_OBJECTIVES;
                windows.push(Window { group, length, begun: Time::START });
            }
        }
        let conduct = device.models.iter().map(|model| Conduct {
            group: model.group,
            accepted: 0,
            strikes: 0,
            length: Span::ZERO,
            evicted_until: Time::START,
        });
        Self { conduct: conduct.collect(), windows }
    }

    /// Watches nobody, so that nobody is evicted.
    pub(super) fn watch_nobody(&mut self) {
        self.windows.clear();
    }

    /// Whether a model is served apart from its group.
    pub(super) fn is_evicted(&self, model: ModelId, now: Time) -> bool {
        self.conduct[model.index()].evicted_until > now
    }

    /// A request was accepted.
    pub(super) fn accepted(&mut self, model: ModelId, now: Time) {
        if self.window_of(model, now).is_some() && !self.is_evicted(model, now) {
            self.conduct[model.index()].accepted += 1;
        }
    }

    /// A model gets a strike; says until when it is evicted, where it is evicted for that.
    pub(super) fn strike(&mut self, model: ModelId, now: Time) -> Option<Time> {
        let window = self.window_of(model, now)?;
        if self.is_evicted(model, now) {
            return None;
        }
        self.conduct[model.index()].strikes += 1;
        self.is_straggler(model, now).then(|| self.evict(model, window, now))
    }

    /// The length of a model's window, which begins anew where it is over.
    fn window_of(&mut self, model: ModelId, now: Time) -> Option<Span> {
        let group = self.conduct[model.index()].group?;
        let window = self.windows.iter_mut().find(|window| window.group == group)?;
        if now.since(window.begun) >= window.length {
            window.begun = now;
            let members = self.conduct.iter_mut().filter(|member| member.group == Some(group));
            members.for_each(|member| (member.accepted, member.strikes) = (0, 0));
        }
        Some(window.length)
    }

    fn is_straggler(&self, model: ModelId, now: Time) -> bool {
        let own = &self.conduct[model.index()];
        let is_mate = |&(index, other): &(usize, &Conduct)| {
            index != model.index() && other.group == own.group && other.evicted_until <= now
        };
        let mates = self.conduct.iter().enumerate().filter(is_mate);
        let (accepted, strikes) =
            mates.fold((0, 0), |sum, (_, mate)| (sum.0 + mate.accepted, sum.1 + mate.strikes));
        let [own_accepted, own_strikes] = [own.accepted, own.strikes].map(f64::from);
        let [mates_accepted, mates_strikes] = [accepted, strikes].map(f64::from);
        own.strikes >= LEAST_STRIKES
            && own_strikes >= STRIKE_SHARE * own_accepted
            && own_strikes * mates_accepted > MUCH_MORE * mates_strikes * own_accepted
    }

    fn evict(&mut self, model: ModelId, window: Span, now: Time) -> Time {
        let conduct = &mut self.conduct[model.index()];
        let was_good = now.since(conduct.evicted_until) >= conduct.length;
        let longest = window * f64::from(1u32 << MOST_DOUBLINGS);
        let length = if was_good { window } else { (conduct.length * 2.0).min(longest) };
        *conduct =
            Conduct { accepted: 0, strikes: 0, length, evicted_until: now + length, ..*conduct };
        conduct.evicted_until
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::plan::Slo;
    use crate::profile::{Profile, ProfilePoint};
    use crate::served::ServedModel;

    const SLO_US: f64 = 1000.0;

    /// Models 0 to 3 are a group, and model 4 is none of it.
    fn stragglers() -> Stragglers {
        let latency = Span::from_us(10.0);
        let point = ProfilePoint { batch: 1, units: 1, latency, dram_bytes: 0.0 };
        let profile = Arc::new(Profile::new(&[point], 1).unwrap());
        let model = |index: u32| ServedModel {
            profile: profile.clone(),
            slo: Some(Slo { percentile: 0.99, latency: Span::from_us(SLO_US) }),
            expected_per_s: 1.0,
            weight: 1.0,
            priority: 0,
            group: (index < 4).then_some(GroupId(7)),
        };
        Stragglers::new(&ServedDevice {
            models: (0..5).map(model).collect(),
            units: 1,
            bandwidth_bytes_per_s: 1e9,
            memory_bytes: 1 << 20,
            can_interrupt: false,
        })
    }

    /// So many windows after the start.
    fn at(windows: f64) -> Time {
        Time::START + Span::from_us(SLO_US * WINDOW_OBJECTIVES * windows)
    }

    /// Has requests of each member accepted, then gives strikes; says until when each was evicted.
    fn play(
        stragglers: &mut Stragglers,
        now: Time,
        accepted: [u32; 4],
        strikes: [u32; 4],
    ) -> [Option<Time>; 4] {
        let models = [0, 1, 2, 3].map(ModelId);
        for (model, count) in models.into_iter().zip(accepted) {
            (0..count).for_each(|_| stragglers.accepted(model, now));
        }
        let mut evicted = [None; 4];
        // In turns, as they happen.
        for round in 0..strikes.into_iter().max().unwrap_or(0) {
            for model in models.into_iter().filter(|model| round < strikes[model.index()]) {
                let until = stragglers.strike(model, now);
                evicted[model.index()] = evicted[model.index()].or(until);
            }
        }
        evicted
    }

    #[test]
    fn only_who_holds_others_up_much_more_than_they_do_is_evicted() {
        let cases: &[([u32; 4], [u32; 4], [bool; 4])] = &[
            ([50; 4], [0, 10, 0, 0], [false, true, false, false]),
            ([50; 4], [0, 9, 0, 0], [false; 4]),
            // Many requests, of which few hold others up.
            ([50, 200, 50, 50], [0, 19, 0, 0], [false; 4]),
            ([50, 200, 50, 50], [0, 20, 0, 0], [false, true, false, false]),
            // All do.
            ([50; 4], [40, 40, 40, 40], [false; 4]),
            ([50; 4], [10, 40, 10, 10], [false; 4]),
            ([50; 4], [3, 40, 3, 3], [false, true, false, false]),
            // Two of four are no exception.
            ([50; 4], [40, 40, 0, 0], [false; 4]),
            // Who is alone holds nobody up.
            ([0, 50, 0, 0], [0, 40, 0, 0], [false; 4]),
        ];
        for (accepted, strikes, expected) in cases {
            let evicted = play(&mut stragglers(), at(0.5), *accepted, *strikes);
            assert_eq!(evicted.map(|until| until.is_some()), *expected, "{accepted:?} {strikes:?}");
        }
        let mut alone = stragglers();
        (0..100).for_each(|_| assert_eq!(alone.strike(ModelId(4), at(0.5)), None));
    }

    #[test]
    fn strikes_are_forgotten_with_their_window() {
        let mut stragglers = stragglers();
        for window in 0..5 {
            let now = at(f64::from(window) + 0.5);
            assert_eq!(play(&mut stragglers, now, [50; 4], [0, 9, 0, 0]), [None; 4]);
        }
    }

    #[test]
    fn evictions_end_and_grow_longer_up_to_a_limit_until_a_member_is_good() {
        let mut stragglers = stragglers();
        let model = ModelId(1);
        let mut now = at(0.5);
        let mut evict = |now: Time| {
            let evicted = play(&mut stragglers, now, [50; 4], [0, 10, 0, 0])[1];
            let until = evicted.expect("it is a straggler");
            assert!(stragglers.is_evicted(model, now), "at once");
            // Meanwhile nothing is held against it.
            assert_eq!(play(&mut stragglers, now, [50; 4], [0, 50, 0, 0]), [None; 4]);
            let last = Time::START + (until.since(Time::START) - Span::from_nanos(1));
            assert!(stragglers.is_evicted(model, last) && !stragglers.is_evicted(model, until));
            (until, until.since(now).us() / (SLO_US * WINDOW_OBJECTIVES))
        };
        for windows in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 64.0] {
            let (until, length) = evict(now);
            assert!((length - windows).abs() < 1e-6, "{length} {windows}");
            now = until + Span::from_us(SLO_US);
        }
        let good = Span::from_us(SLO_US * WINDOW_OBJECTIVES * 64.0);
        let (_, length) = evict(now + good);
        assert!((length - 1.0).abs() < 1e-6, "{length}");
    }
}
