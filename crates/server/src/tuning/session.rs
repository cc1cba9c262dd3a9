//! One session of tuning beside what is served: one size after another, each put to use when it is done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weft_tuner::choices::Choices;
use weft_tuner::database::Database;
use weft_tuner::report::SizeReport;
use weft_tuner::search::SearchOptions;
use weft_tuner::session::{Assignment, Outcome, Stop, TuneOptions, tune};
use weft_tuner::tenant::{TenantDevice, TrialModel};
use weft_tuner::{Recorder, experience};

use super::TuningHost;
use super::agenda::{Share, chosen, shares, units_of};
use super::document::{TuningDocument, TuningRequest, TuningState};
use super::effort::TrialEffort;
use super::error::TuningError;
use super::guest::{EngineTurns, guest};
use super::journal::{Journal, Watching};

/// Who wants a session to end.
#[derive(Default)]
pub(super) struct Control {
    pub(super) stop: Stop,
    /// The server ends too, so that nothing has to be put to use.
    pub(super) is_leaving: AtomicBool,
}

/// A session that is ready to run.
pub(super) struct Session {
    host: Arc<TuningHost>,
    database: Database,
    models: Vec<String>,
    shares: Vec<Share>,
    effort: TrialEffort,
    trials: Option<usize>,
    budget: Option<Duration>,
    journal: Journal,
    control: Arc<Control>,
}

impl Session {
    /// Finds out what there is to tune, and what with.
    pub(super) fn new(
        host: Arc<TuningHost>,
        request: &TuningRequest,
        journal: Journal,
        control: Arc<Control>,
    ) -> Result<Self, TuningError> {
        let (budget, effort) = times(request)?;
        let database = Database::open(&host.database)?;
        let served = host.library.residents()?;
        let models = chosen(&served, &request.models)?;
        let effort = TrialEffort::beside(&served, effort, host.engine.has_background())?;
        let (device, status) = (&*host.device, host.engine.status());
        let shares = shares(device, &host.units, &models, &request.batches, &status)?;
        let mut models: Vec<String> = models.into_iter().map(|(name, _)| name).collect();
        models.dedup();
        journal.write(|document| {
            *document = TuningDocument {
                state: TuningState::Running,
                models: models.clone(),
                sizes: shares.iter().map(|share| share.size).collect(),
                effort_ms: effort.first.as_secs_f64() * 1e3,
                database: host.database.display().to_string(),
                ..TuningDocument::default()
            };
        });
        let trials = request.trials;
        Ok(Self { host, database, models, shares, effort, trials, budget, journal, control })
    }

    /// Tunes for each size in turn.
    pub(super) fn run(&self) -> Result<(), TuningError> {
        let start = Instant::now();
        for (place, share) in self.shares.iter().enumerate() {
            if self.control.stop.is_asked() {
                return Ok(());
            }
            // What one size leaves over of its time is for the others.
            let left = self.budget.map(|budget| budget.saturating_sub(start.elapsed()));
            let left = left.map(|left| left / (self.shares.len() - place) as u32);
            let outcome = self.tune_beside(share, left);
            self.host.library.host(None)?;
            let outcome = outcome?;
            let report = SizeReport::of(share.size, &share.tasks, &outcome);
            self.journal.write(|document| document.reports.push(report));
            if outcome.choices.iter().any(Option::is_some) {
                self.put_to_use()?;
            }
        }
        Ok(())
    }

    /// Takes the model of trials away, wherever the session was.
    pub(super) fn leave(&self) {
        if let Err(error) = self.host.library.host(None) {
            tracing::error!(%error, "the model of trials cannot be let go");
        }
    }

    /// Tunes for one size, while the model of trials is served.
    fn tune_beside(&self, share: &Share, budget: Option<Duration>) -> Result<Outcome, TuningError> {
        let host = &self.host;
        let platform = host.device.platform();
        let mut tasks = share.tasks.clone();
        let recorder = Recorder::new(&self.database, &platform, share.size, &tasks);
        recorder.recall(&mut tasks)?;
        let experience = experience(&self.database, &platform)?;
        let trial_model = Arc::new(TrialModel::new(share.size)?);
        let guest = guest(trial_model.clone(), share.units, self.effort.trial())
            .map_err(|error| TuningError::Broken(error.to_string()))?;
        let key = guest.key;
        host.library.host(Some(guest))?;
        let partitions = host.engine.status().partitions.into_iter();
        let places = partitions
            .filter(|partition| partition.models.contains(&key))
            .map(|partition| units_of(&host.units, partition.units))
            .filter(|units| host.device.size_of(units) >= share.size);
        let turns = Arc::new(EngineTurns::new(host.engine.clone(), key, self.effort.longest));
        let device =
            TenantDevice::new(host.device.clone(), trial_model, turns, places.collect(), &tasks);
        let size = share.size;
        let watching =
            Watching { recorder: &recorder, tasks: &tasks, size, journal: &self.journal };
        let assignment = Assignment { size, tasks: &tasks, experience: &experience };
        Ok(tune(&device, assignment, &self.options(budget), &watching, &self.control.stop)?)
    }

    fn options(&self, budget: Option<Duration>) -> TuneOptions {
        let usual = TuneOptions::default();
        let max_trials = self.trials.unwrap_or(usual.search.max_trials);
        TuneOptions {
            search: SearchOptions { max_trials, ..usual.search },
            effort: self.effort.first,
            final_effort: self.effort.last,
            compile_threads: Some(1),
            budget,
            ..usual
        }
    }

    /// Has the device take what was found, and what is served prepared with it.
    fn put_to_use(&self) -> Result<(), TuningError> {
        if self.control.is_leaving.load(Ordering::Relaxed) {
            return Ok(());
        }
        let choices = Choices::load(&self.database, &self.host.device.platform())?;
        self.host.device.use_choices(Arc::new(choices));
        Ok(self.host.library.prepare_anew(self.models.clone())?)
    }
}

/// The budget and the effort that are asked for.
fn times(request: &TuningRequest) -> Result<(Option<Duration>, Option<Duration>), TuningError> {
    let wrong = |what: &str| TuningError::WrongRequest(what.into());
    let seconds = |given: Option<f64>, scale: f64, what: &str| {
        let time = given.map(|given| Duration::try_from_secs_f64(given * scale));
        let time = time.transpose().map_err(|_| wrong(what))?;
        if time == Some(Duration::ZERO) { Err(wrong(what)) } else { Ok(time) }
    };
    if request.trials == Some(0) {
        return Err(wrong("'trials' must be at least 1"));
    }
    if request.batches.contains(&0) {
        return Err(wrong("'batches' must be at least 1 each"));
    }
    let budget = seconds(request.budget_s, 1.0, "'budget_s' must be a positive time")?;
    let effort = seconds(request.effort_ms, 1e-3, "'effort_ms' must be a positive time")?;
    Ok((budget, effort))
}
