//! The thread that keeps what is served in step with what is wanted: it loads, puts out and brings back, one step at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use weft_engine::{Engine, EngineModel, StartError};
use weft_repository::{ModelSettings, Repository};

use super::grouping::{self, Candidate, Groups};
use super::loading::{LoadFailure, Loader, ModelVersion, Resident, Wanted};
use super::residency::{Occupant, leaving};
use crate::error::ServeError;
use crate::models::{ModelEntry, ModelTable};
use crate::repository::{IndexEntry, ModelState};
use crate::statistics::now_ms;

/// How often idle models are looked for.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// How long a version that is served no more may take to end what it was asked before.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);
const DRAIN_POLL: Duration = Duration::from_millis(2);

/// What is expected of a version that is served no more: its requests are counted where they will go.
const LEAVING_PER_S: f64 = 0.01;

/// Told what came of a command.
pub(super) type Done = Sender<Result<(), ServeError>>;

pub(super) enum Command {
    /// What is wanted is now this.
    Apply(Box<Repository>, Done),
    Load(String, Done),
    Unload(String, Done),
    /// A model that is asleep has been asked for.
    Wake(String, Done),
    /// A model of nobody's is served beside the others from now on, or none.
    Host(Option<Box<EngineModel>>, Done),
    /// The device takes other kernels: these models are to be prepared with them.
    PrepareAnew(Vec<String>, Done),
    /// Which models are resident, by name.
    Residents(Sender<Vec<(String, EngineModel)>>),
}

pub(super) struct Curator {
    pub(super) loader: Loader,
    pub(super) engine: Arc<Engine>,
    pub(super) table: Arc<ModelTable>,
    pub(super) budget_bytes: u64,
    /// Every version there is, for who asks.
    pub(super) index: Arc<Mutex<Vec<IndexEntry>>>,
    /// What those that are resident take together.
    pub(super) taken_bytes: Arc<AtomicU64>,
    pub(super) shelf: Shelf,
    /// A model that clients do not see.
    pub(super) guest: Option<EngineModel>,
    pub(super) groups: Groups,
    /// What the groups that are served take, besides what their members take.
    pub(super) group_bytes: u64,
    /// What is served is to be put into groups anew.
    pub(super) has_new_groups: bool,
    /// How often each version was asked for when something was last to be changed: a new layout is made for that.
    pub(super) rates_per_s: BTreeMap<ModelVersion, f64>,
}

/// Which versions there are, and where each is.
#[derive(Default)]
pub(super) struct Shelf {
    wanted: BTreeMap<ModelVersion, Wanted>,
    residents: BTreeMap<ModelVersion, Resident>,
    /// Models that an operator has put out.
    unloaded: BTreeSet<String>,
    /// Versions that come back when they are asked for.
    asleep: BTreeSet<ModelVersion>,
    /// Models that were asked for, and may take others' places.
    called: BTreeSet<String>,
    /// With what was wanted when it failed, so that it is not tried again until that changes.
    failures: BTreeMap<ModelVersion, (Wanted, String)>,
}

impl Curator {
    pub(super) fn work(mut self, commands: &Receiver<Command>) {
        loop {
            match commands.recv_timeout(IDLE_INTERVAL) {
                Ok(command) => self.obey(command),
                Err(RecvTimeoutError::Timeout) => self.rest_idle(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn obey(&mut self, command: Command) {
        self.note_rates();
        let (outcome, done) = match command {
            Command::Apply(repository, done) => {
                // By settings that are wrong nothing is wanted, and nothing is taken away.
                if let Some(settings) = &repository.settings.settings {
                    self.shelf.wanted = wanted(&repository);
                    self.has_new_groups |= self.groups.follow(&settings.server);
                }
                self.settle();
                (Ok(()), done)
            }
            Command::Load(name, done) => {
                self.shelf.unloaded.remove(&name);
                self.shelf.failures.retain(|version, _| version.name != name);
                (self.call(&name), done)
            }
            Command::Unload(name, done) => {
                let outcome = self.known(&name).map(|()| {
                    self.shelf.unloaded.insert(name);
                    self.settle();
                });
                (outcome, done)
            }
            Command::Wake(name, done) => (self.call(&name), done),
            Command::Host(guest, done) => (self.host(guest.map(|guest| *guest)), done),
            Command::PrepareAnew(names, done) => {
                self.prepare_anew(&names);
                (Ok(()), done)
            }
            Command::Residents(told) => {
                let residents = self.shelf.residents.iter();
                let residents =
                    residents.map(|(it, resident)| (it.name.clone(), resident.model.clone()));
                let _ = told.send(residents.collect());
                return;
            }
        };
        // Whoever asked may have gone.
        let _ = done.send(outcome);
    }

    fn note_rates(&mut self) {
        let models = self.engine.status().models;
        let rate_of = |resident: &Resident| {
            models.iter().find(|model| model.model == resident.model.key)?.rate_per_s
        };
        let residents = self.shelf.residents.iter();
        let rates = residents.filter_map(|(it, resident)| Some((it.clone(), rate_of(resident)?)));
        self.rates_per_s = rates.collect();
    }

    fn known(&self, name: &str) -> Result<(), ServeError> {
        let is_known = self.shelf.wanted.keys().any(|version| version.name == name);
        if is_known { Ok(()) } else { Err(ServeError::UnknownModel(name.into())) }
    }

    /// Brings a model in, others out where it needs their place.
    fn call(&mut self, name: &str) -> Result<(), ServeError> {
        self.known(name)?;
        self.shelf.asleep.retain(|version| version.name != name);
        self.shelf.called.insert(name.into());
        self.settle();
        self.shelf.called.remove(name);
        let failure = self.shelf.failures.iter().find(|(version, _)| version.name == name);
        match failure {
            Some((_, (_, reason))) if self.table.versions(name).is_empty() => {
                Err(ServeError::Unavailable { model: name.into(), reason: reason.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Serves another guest, or none, beside the residents; where that cannot be, the one before stays.
    fn host(&mut self, guest: Option<EngineModel>) -> Result<(), ServeError> {
        let before = std::mem::replace(&mut self.guest, guest);
        self.serve(&[]).map_err(|error| {
            let guest = std::mem::replace(&mut self.guest, before);
            let model = guest.map_or_else(String::new, |guest| guest.loaded.name().into());
            ServeError::Unavailable { model, reason: error.to_string() }
        })?;
        let name_of = |guest: &EngineModel| (guest.key, guest.loaded.name().to_string());
        self.table.host(self.guest.as_ref().map(name_of));
        Ok(())
    }

    /// Has residents prepared with the kernels that the device takes now, beside what they are served with until then.
    fn prepare_anew(&mut self, names: &[String]) {
        self.loader.profiles.outdate();
        self.groups.forget();
        let before = self.shelf.residents.clone();
        for (version, resident) in &mut self.shelf.residents {
            if names.contains(&version.name) {
                *resident = resident.prepared_anew();
            }
        }
        self.conclude(before);
    }

    /// Puts models to sleep that nobody has used for as long as they stay without.
    fn rest_idle(&mut self) {
        let now = now_ms();
        let is_idle = |resident: &Resident| {
            let idle = Duration::from_millis(now.saturating_sub(resident.entry.last_used_ms()));
            let agreed = &resident.wanted.agreed;
            !agreed.keep_loaded && agreed.idle_timeout.is_some_and(|timeout| idle >= timeout)
        };
        let residents = self.shelf.residents.iter();
        let idle: Vec<ModelVersion> =
            residents.filter(|(_, it)| is_idle(it)).map(|(version, _)| version.clone()).collect();
        if !idle.is_empty() {
            for version in &idle {
                tracing::info!(model = version.name, version = version.version, "idle, asleep");
            }
            self.shelf.asleep.extend(idle);
            self.settle();
        }
    }

    /// Makes what is served what is wanted, as far as that can be.
    fn settle(&mut self) {
        let shelf = &mut self.shelf;
        shelf.asleep.retain(|version| shelf.wanted.contains_key(version));
        shelf.failures.retain(|version, (tried, _)| shelf.wanted.get(version) == Some(&*tried));
        let before = shelf.residents.clone();
        for (version, wanted) in shelf.wanted.clone() {
            if self.is_out(&version) {
                self.shelf.residents.remove(&version);
            } else if let Err(reason) = self.bring_in(&version, &wanted) {
                let outcome = without_it(self.shelf.residents.contains_key(&version));
                tracing::warn!(
                    model = version.name,
                    version = version.version,
                    reason,
                    "{outcome}"
                );
                self.shelf.failures.insert(version, (wanted, reason));
            }
        }
        let shelf = &mut self.shelf;
        // A version that is wanted no more stays for as long as the one in its place fails.
        let failed: BTreeSet<&str> = shelf.failures.keys().map(|it| it.name.as_str()).collect();
        shelf.residents.retain(|version, _| {
            let is_out = shelf.unloaded.contains(&version.name);
            shelf.wanted.contains_key(version) || (failed.contains(&*version.name) && !is_out)
        });
        self.conclude(before);
    }

    /// Serves what is resident now, and says what that is and takes.
    fn conclude(&mut self, before: BTreeMap<ModelVersion, Resident>) {
        self.change_over(before);
        self.write_index();
        self.taken_bytes.store(self.residents_bytes() + self.group_bytes, Ordering::Relaxed);
        self.leave_to_mixes(0);
    }

    /// Mixes have what is left by models, those that are coming among them, and by groups.
    fn leave_to_mixes(&self, coming_bytes: u64) {
        let taken_bytes = self.residents_bytes() + self.group_bytes + coming_bytes;
        self.engine.leave_to_mixes(self.budget_bytes.saturating_sub(taken_bytes));
    }

    /// What models take, each by itself.
    fn residents_bytes(&self) -> u64 {
        self.shelf.residents.values().map(Resident::memory_bytes).sum()
    }

    fn is_out(&self, version: &ModelVersion) -> bool {
        self.shelf.unloaded.contains(&version.name) || self.shelf.asleep.contains(version)
    }

    /// Loads a version, unless it is loaded as it should be. Where that fails, the one before it stays.
    fn bring_in(&mut self, version: &ModelVersion, wanted: &Wanted) -> Result<(), String> {
        match self.shelf.residents.get_mut(version) {
            Some(resident) if resident.wanted == *wanted => return Ok(()),
            Some(resident) if wanted.is_loaded_as(&resident.wanted) => {
                *resident = resident.agreed_anew(wanted.clone());
                return Ok(());
            }
            _ if self.shelf.failures.contains_key(version) => return Ok(()),
            _ => {}
        }
        let estimate_bytes = fs::metadata(&wanted.file).map_or(0, |file| file.len());
        if !self.make_room(version, wanted, estimate_bytes)? {
            return Ok(());
        }
        let start = Instant::now();
        let loaded = self.loader.load(version, wanted);
        let resident = loaded.map_err(|error: LoadFailure| error.to_string())?;
        if !self.make_room(version, wanted, resident.memory_bytes())? {
            return Ok(());
        }
        let seconds = start.elapsed().as_secs_f64();
        tracing::info!(model = version.name, version = version.version, seconds, "loaded");
        self.shelf.residents.insert(version.clone(), resident);
        Ok(())
    }

    /// Whether there is room for a version. One that was asked for takes it from those that were not used for longest; one
    /// that nobody has asked for sleeps.
    fn make_room(
        &mut self,
        version: &ModelVersion,
        wanted: &Wanted,
        memory_bytes: u64,
    ) -> Result<bool, String> {
        let others = self.shelf.residents.iter().filter(|(other, _)| *other != version);
        let mut occupants: Vec<Occupant> = others
            .map(|(version, resident)| Occupant {
                version: version.clone(),
                memory_bytes: resident.memory_bytes(),
                last_used: resident.entry.last_used_ms(),
                is_kept: resident.wanted.agreed.keep_loaded,
            })
            .collect();
        let newcomer =
            Occupant { version: version.clone(), memory_bytes, last_used: u64::MAX, is_kept: true };
        occupants.push(newcomer);
        let leaving = leaving(&occupants, self.budget_bytes).ok_or_else(|| {
            let budget_bytes = self.budget_bytes;
            format!("it takes {memory_bytes} bytes, and there is no room in {budget_bytes}")
        })?;
        let may_displace = wanted.agreed.keep_loaded || self.shelf.called.contains(&version.name);
        if !leaving.is_empty() && !may_displace {
            self.shelf.asleep.insert(version.clone());
            return Ok(false);
        }
        for version in leaving {
            tracing::info!(model = version.name, version = version.version, "asleep");
            self.shelf.residents.remove(&version);
            self.shelf.asleep.insert(version);
        }
        self.leave_to_mixes(memory_bytes);
        Ok(true)
    }

    /// From what was served before to what is resident now, without a gap: first both are served, then clients are sent to
    /// the new ones, and when nobody uses the others any more these are let go.
    fn change_over(&mut self, before: BTreeMap<ModelVersion, Resident>) {
        let is_same = |version: &ModelVersion, resident: &Resident| {
            let now = self.shelf.residents.get(version);
            now.is_some_and(|now| now.model.key == resident.model.key)
        };
        let leaving: Vec<Resident> = before
            .iter()
            .filter(|(version, resident)| !is_same(version, resident))
            .map(|(_, resident)| resident.clone())
            .collect();
        let is_unchanged = !std::mem::take(&mut self.has_new_groups)
            && before.len() == self.shelf.residents.len()
            && leaving.is_empty()
            && before.iter().all(|(version, it)| self.shelf.residents[version].wanted == it.wanted);
        if is_unchanged {
            self.publish();
            return;
        }
        self.serve_with(&before, &leaving);
        self.publish();
        if leaving.is_empty() {
            return;
        }
        let entries: Vec<Arc<ModelEntry>> =
            leaving.into_iter().map(|resident| resident.entry).collect();
        drop(before);
        wait_until_unused(&entries);
        if let Err(error) = self.serve(&[]) {
            tracing::error!(%error, "what is served no more cannot be let go");
        }
    }

    /// Serves what is resident and what is leaving. Where a newcomer cannot be prepared it fails alone.
    fn serve_with(&mut self, before: &BTreeMap<ModelVersion, Resident>, leaving: &[Resident]) {
        if self.serve(leaving).is_ok() {
            return;
        }
        let residents = std::mem::take(&mut self.shelf.residents);
        let (newcomers, others): (BTreeMap<_, _>, _) =
            residents.into_iter().partition(|(version, resident)| {
                let earlier = before.get(version);
                earlier.is_none_or(|earlier| earlier.model.key != resident.model.key)
            });
        self.shelf.residents = others;
        for (version, newcomer) in newcomers {
            let earlier = before.get(&version).cloned();
            let wanted = newcomer.wanted.clone();
            self.shelf.residents.insert(version.clone(), newcomer);
            if let Err(error) = self.serve(leaving) {
                let outcome = without_it(earlier.is_some());
                tracing::warn!(model = version.name, version = version.version, %error, "{outcome}");
                self.shelf.residents.remove(&version);
                self.shelf.residents.extend(earlier.map(|earlier| (version.clone(), earlier)));
                self.shelf.failures.insert(version, (wanted, error.to_string()));
            }
        }
    }

    /// Serves what is resident and what is leaving, in groups where that can be.
    fn serve(&mut self, leaving: &[Resident]) -> Result<(), StartError> {
        let candidates = self.candidates(leaving);
        let free_bytes = self.budget_bytes.saturating_sub(self.residents_bytes());
        let models = self.groups.join(&self.loader, &candidates, free_bytes);
        let Err(error) = self.engine.serve(models.clone()) else {
            self.group_bytes = grouping::memory_bytes(&models);
            return Ok(());
        };
        if models.iter().all(|model| model.served.group.is_none()) {
            return Err(error);
        }
        let apart = candidates.into_iter().map(|candidate| candidate.model);
        self.engine.serve(apart.collect())?;
        tracing::warn!(%error, "served apart, not as groups");
        self.group_bytes = 0;
        self.groups.give_up(&models);
        Ok(())
    }

    fn candidates(&self, leaving: &[Resident]) -> Vec<Candidate> {
        let candidate = |resident: &Resident, expected_per_s, is_leaving| Candidate {
            model: asked_for(&resident.model, expected_per_s),
            likeness: Some(resident.likeness.clone()),
            is_leaving,
        };
        let residents = self.shelf.residents.iter().map(|(version, resident)| {
            let agreed = resident.model.served.expected_per_s;
            let seen = self.rates_per_s.get(version).copied().unwrap_or_default();
            candidate(resident, agreed.max(seen), false)
        });
        let leaving = leaving.iter().map(|resident| candidate(resident, LEAVING_PER_S, true));
        let guest = self.guest.iter().cloned();
        let guest = guest.map(|model| Candidate { model, likeness: None, is_leaving: false });
        residents.chain(leaving).chain(guest).collect()
    }

    /// Sends clients to what is resident.
    fn publish(&self) {
        let entries = self.shelf.residents.values().map(|resident| resident.entry.clone());
        let asleep = self.shelf.asleep.iter();
        let asleep = asleep.filter(|version| !self.shelf.unloaded.contains(&version.name));
        self.table.replace(entries, asleep.map(|version| version.name.clone()));
    }

    fn write_index(&self) {
        let entry = |version: &ModelVersion| {
            let failure = self.shelf.failures.get(version).map(|(_, reason)| reason.clone());
            let is_ready = self.shelf.residents.contains_key(version);
            let (state, reason) = match failure {
                Some(reason) if is_ready => (ModelState::Ready, reason),
                Some(reason) => (ModelState::Failed, reason),
                None if is_ready => (ModelState::Ready, String::new()),
                None if self.shelf.unloaded.contains(&version.name) => {
                    (ModelState::Unloaded, "unloaded".into())
                }
                None => (ModelState::Asleep, "asleep until it is asked for".into()),
            };
            let (name, version) = (version.name.clone(), version.version.to_string());
            IndexEntry { name, version, state, reason }
        };
        let entries = self.shelf.wanted.keys().map(entry).collect();
        *self.index.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = entries;
    }
}

/// A model that is expected to be asked for so often.
fn asked_for(model: &EngineModel, expected_per_s: f64) -> EngineModel {
    let mut model = model.clone();
    model.served.expected_per_s = expected_per_s;
    model
}

/// Every version that is to be served.
fn wanted(repository: &Repository) -> BTreeMap<ModelVersion, Wanted> {
    let mut all = BTreeMap::new();
    for (name, model) in repository.models() {
        let Some(mut agreed) = repository.model_settings(name) else { continue };
        agreed.weight *= weight_of_tenant(repository, &agreed);
        for (number, version) in model.served_versions() {
            let wanted = Wanted {
                file: version.file.clone(),
                fingerprint: version.fingerprint.clone(),
                agreed: agreed.clone(),
            };
            all.insert(ModelVersion { name: name.into(), version: number }, wanted);
        }
    }
    all
}

/// What a model's weight is multiplied by: its tenant's share.
fn weight_of_tenant(repository: &Repository, agreed: &ModelSettings) -> f64 {
    let settings = repository.settings.settings.as_ref();
    let tenant = agreed.tenant.as_ref().and_then(|name| settings?.tenants.get(name));
    tenant.map_or(1.0, |tenant| tenant.weight)
}

/// What becomes of a version that cannot be brought in as it is wanted, for the log.
fn without_it(is_resident: bool) -> &'static str {
    if is_resident { "served as it was" } else { "not served" }
}

/// Waits until the requests that have found these models have ended: each holds its entry for as long.
fn wait_until_unused(entries: &[Arc<ModelEntry>]) {
    let start = Instant::now();
    while entries.iter().any(|entry| Arc::strong_count(entry) > 1) && start.elapsed() < DRAIN_LIMIT
    {
        thread::sleep(DRAIN_POLL);
    }
}

#[cfg(test)]
mod tests {
    use weft_repository::{RepositoryFiles, generate_key, scan};

    use super::*;

    #[test]
    fn the_weight_of_a_tenant_multiplies_its_models() {
        let folder = tempfile::tempdir().unwrap();
        for model in ["own.onnx", "free.onnx"] {
            fs::write(folder.path().join(model), "weights").unwrap();
        }
        let hash = generate_key().unwrap().hash;
        let text = format!(
            "[tenants.red]\nkey_hashes = ['{hash}']\nweight = 3\n[defaults]\nweight = 2\n\
             [models.own]\ntenant = 'red'\n"
        );
        fs::write(folder.path().join("weft.toml"), text).unwrap();
        let wanted = wanted(&scan(&RepositoryFiles::in_folder(folder.path())).unwrap());
        let weights = wanted.iter().map(|(it, wanted)| (&*it.name, wanted.agreed.weight));
        assert_eq!(weights.collect::<Vec<_>>(), [("free", 2.0), ("own", 6.0)]);
    }
}
