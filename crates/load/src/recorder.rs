//! Keeps count of what becomes of requests while a run goes on.

use weft_scheduler::{Span, Time};

use crate::model_load::ModelLoad;
use crate::outcome::{Interval, ModelOutcome, Outcome, interval_at, interval_of};
use crate::prepared::Fate;

/// A request on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Job {
    /// When it was due.
    pub(crate) due: Time,
    /// The place of its model.
    pub(crate) model: u32,
    /// Whether a client waits for what becomes of it.
    pub(crate) is_of_client: bool,
    /// Whether it found every connection busy.
    pub(crate) has_waited: bool,
}

/// What is counted so far.
pub(crate) struct Recorder {
    outcome: Outcome,
}

impl Recorder {
    /// Counts what is due from the warm-up's end on.
    pub(crate) fn new(models: &[ModelLoad], warm_up: Span, length: Span) -> Self {
        let of_model = |model: &ModelLoad| ModelOutcome {
            name: model.name.clone(),
            slo: model.slo,
            ..ModelOutcome::default()
        };
        let models = models.iter().map(of_model).collect();
        let outcome = Outcome {
            models,
            warm_up,
            length,
            interval: interval_of(length),
            ..Outcome::default()
        };
        Self { outcome }
    }

    /// The outcome of a request's model, if the request counts.
    fn of(&mut self, job: &Job) -> Option<&mut ModelOutcome> {
        let counts = job.due >= Time::after_start(self.outcome.warm_up);
        counts.then(|| &mut self.outcome.models[job.model as usize])
    }

    fn interval_of(&mut self, job: &Job) -> Option<&mut Interval> {
        let place = interval_at(job.due, self.outcome.warm_up, self.outcome.interval);
        let intervals = &mut self.of(job)?.intervals;
        if intervals.len() <= place {
            intervals.resize(place + 1, Interval::default());
        }
        Some(&mut intervals[place])
    }

    /// The instant of a request has come.
    pub(crate) fn due(&mut self, job: &Job) {
        if let Some(interval) = self.interval_of(job) {
            interval.due += 1;
        }
        if let Some(model) = self.of(job) {
            model.due += 1;
        }
    }

    /// A request will not be sent.
    pub(crate) fn dropped(&mut self, job: &Job) {
        if let Some(model) = self.of(job) {
            model.dropped += 1;
        }
    }

    /// A request is sent.
    pub(crate) fn sent(&mut self, job: &Job, now: Time) {
        let Some(model) = self.of(job) else { return };
        model.sent += 1;
        let delay = now.since(job.due);
        match job.has_waited {
            true => {
                model.waited += 1;
                model.connection_waits.add(delay);
            }
            false => model.send_delays.add(delay),
        }
    }

    /// A request has come to its end.
    pub(crate) fn ended(&mut self, job: &Job, fate: &Fate, now: Time) {
        let Some(model) = self.of(job) else { return };
        let latency = now.since(job.due);
        match fate {
            Fate::Refused(why) => model.refused.add(&why.reason, &why.message),
            Fate::Failed(why) => model.failed.add(&why.reason, &why.message),
            Fate::Answered => {
                model.answered += 1;
                model.latencies.add(latency);
                let is_in_time = model.slo.is_none_or(|slo| latency <= slo);
                model.in_time += u64::from(is_in_time);
                if let Some(interval) = self.interval_of(job) {
                    interval.latencies.add(latency);
                    interval.in_time += u64::from(is_in_time);
                }
            }
        }
    }

    pub(crate) fn so_far(&self) -> &Outcome {
        &self.outcome
    }

    /// The run is over: `end` is when requests stopped being due. What was sent and has no answer yet has failed.
    pub(crate) fn finish(&mut self, end: Time) -> Outcome {
        let mut outcome = std::mem::take(&mut self.outcome);
        outcome.length = end.since(Time::after_start(outcome.warm_up));
        for model in &mut outcome.models {
            let ended = model.answered + model.refused.count() + model.failed.count();
            model.failed.add_many("no answer by the end", model.sent - ended, "");
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use weft_simulator::Load;

    use super::*;
    use crate::model_load::Dimensions;
    use crate::reply::Rejection;

    fn at(ms: f64) -> Time {
        Time::after_start(Span::from_us(ms * 1e3))
    }

    fn job(ms: f64) -> Job {
        Job { due: at(ms), model: 0, is_of_client: false, has_waited: false }
    }

    fn recorder() -> Recorder {
        let model = ModelLoad {
            name: "m".into(),
            load: Load::Poisson { rate_per_s: 1.0 },
            slo: Some(Span::from_us(50_000.0)),
            timeout: None,
            dimensions: Dimensions::default(),
        };
        Recorder::new(&[model], Span::from_us(100_000.0), Span::from_s(1.0))
    }

    #[test]
    fn latency_counts_from_the_instant_that_was_due() {
        let mut recorder = recorder();
        let job = Job { has_waited: true, ..job(200.0) };
        recorder.due(&job);
        recorder.sent(&job, at(230.0));
        recorder.ended(&job, &Fate::Answered, at(260.0));
        let outcome = recorder.finish(at(1100.0));
        let model = &outcome.models[0];
        assert_eq!((model.answered, model.in_time, model.waited), (1, 0, 1));
        assert_eq!(model.latencies.quantile(1.0), Span::from_us(60_000.0));
        assert_eq!(model.connection_waits.quantile(1.0), Span::from_us(30_000.0));
        assert_eq!(model.send_delays.count(), 0);
        assert_eq!(outcome.length, Span::from_s(1.0));
    }

    #[test]
    fn everything_that_was_due_is_accounted_for() {
        let mut recorder = recorder();
        let why = Rejection { reason: "429".into(), message: "too late".into() };
        let fates = [Fate::Answered, Fate::Refused(why.clone()), Fate::Failed(why)];
        for (index, fate) in fates.iter().enumerate() {
            let job = job(200.0 + index as f64);
            recorder.due(&job);
            recorder.sent(&job, job.due);
            recorder.ended(&job, fate, at(210.0));
        }
        for (ms, is_sent) in [(300.0, true), (301.0, false), (50.0, true)] {
            let job = job(ms);
            recorder.due(&job);
            match is_sent {
                true => recorder.sent(&job, job.due),
                false => recorder.dropped(&job),
            }
        }
        let outcome = recorder.finish(at(500.0));
        let model = &outcome.models[0];
        assert_eq!((model.due, model.sent, model.dropped), (5, 4, 1), "the warm-up does not count");
        let ended = model.answered + model.refused.count() + model.failed.count();
        assert_eq!(ended + model.dropped, model.due);
        assert_eq!(model.attainment(), Some(0.2));
        assert_eq!(model.intervals.iter().map(|interval| interval.due).sum::<u64>(), 5);
    }
}
