//! Models that are asleep and are asked for: each is woken once, however many ask, and all who wait are told what came of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::error::ServeError;
use crate::repository::Repository;

/// `None` until something has come of it.
type Told = watch::Receiver<Option<Result<(), ServeError>>>;

/// Those who wake, by the name of the model.
#[derive(Clone, Default)]
pub(crate) struct Wakes {
    under_way: Arc<Mutex<HashMap<String, Told>>>,
}

/// One that is under way; it is not any more when this is dropped.
struct Waking {
    wakes: Wakes,
    name: String,
    tell: watch::Sender<Option<Result<(), ServeError>>>,
}

impl Wakes {
    /// Brings a model back, or waits for whoever does.
    pub(crate) async fn wake(
        &self,
        repository: &Arc<dyn Repository>,
        name: &str,
    ) -> Result<(), ServeError> {
        let mut told = self.told_of(repository, name);
        let outcome = told.wait_for(Option::is_some).await;
        // Who wakes it has gone without a word only where the server ends.
        let outcome = outcome.map_err(|_| ServeError::Stopping)?;
        outcome.as_ref().map_or(Ok(()), |outcome| retold(outcome, name))
    }

    fn told_of(&self, repository: &Arc<dyn Repository>, name: &str) -> Told {
        let mut under_way = self.lock();
        if let Some(told) = under_way.get(name) {
            return told.clone();
        }
        let (tell, told) = watch::channel(None);
        under_way.insert(name.into(), told.clone());
        drop(under_way);
        let waking = Waking { wakes: self.clone(), name: name.into(), tell };
        let repository = repository.clone();
        tokio::task::spawn_blocking(move || {
            let outcome = repository.wake(&waking.name);
            // Whoever asks from now on finds it awake, or tries again.
            waking.wakes.lock().remove(&waking.name);
            waking.tell.send_replace(Some(outcome));
        });
        told
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Told>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waking {
    fn drop(&mut self) {
        let mut under_way = self.wakes.lock();
        // Another one may have begun since it ended.
        let is_it = |told: &Told| told.same_channel(&self.tell.subscribe());
        if under_way.get(&self.name).is_some_and(is_it) {
            under_way.remove(&self.name);
        }
    }
}

/// What came of it, for one more who waits.
fn retold(outcome: &Result<(), ServeError>, name: &str) -> Result<(), ServeError> {
    let Err(error) = outcome else { return Ok(()) };
    Err(match error {
        ServeError::UnknownModel(name) => ServeError::UnknownModel(name.clone()),
        ServeError::Unavailable { model, reason } => {
            ServeError::Unavailable { model: model.clone(), reason: reason.clone() }
        }
        ServeError::Stopping => ServeError::Stopping,
        other => ServeError::Unavailable { model: name.into(), reason: other.to_string() },
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, channel};

    use tokio::runtime::Builder;
    use tokio::task::yield_now;

    use super::*;
    use crate::repository::IndexEntry;

    /// Models that wake when they are told to.
    struct Sleepers {
        may_wake: Mutex<Receiver<()>>,
        woken: AtomicUsize,
    }

    impl Repository for Sleepers {
        fn index(&self) -> Vec<IndexEntry> {
            Vec::new()
        }

        fn load(&self, name: &str, _: Option<&str>) -> Result<(), ServeError> {
            self.wake(name)
        }

        fn unload(&self, _: &str) -> Result<(), ServeError> {
            Ok(())
        }

        fn wake(&self, name: &str) -> Result<(), ServeError> {
            self.woken.fetch_add(1, Ordering::Relaxed);
            self.may_wake.lock().unwrap().recv().expect("it is told");
            match name {
                "broken" => {
                    Err(ServeError::Unavailable { model: name.into(), reason: "so".into() })
                }
                _ => Ok(()),
            }
        }
    }

    #[test]
    fn a_model_is_woken_once_for_all_who_ask() {
        let (tell, may_wake) = channel();
        let (may_wake, woken) = (Mutex::new(may_wake), AtomicUsize::new(0));
        let sleepers = Arc::new(Sleepers { may_wake, woken });
        let repository: Arc<dyn Repository> = sleepers.clone();
        let wakes = Wakes::default();
        // One thread beside the connections, for which all would wait in turn.
        let runtime = Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        let asked = Arc::<AtomicUsize>::default();
        let ask = |name: &'static str| {
            let (wakes, repository, asked) = (wakes.clone(), repository.clone(), asked.clone());
            runtime.spawn(async move {
                asked.fetch_add(1, Ordering::Relaxed);
                wakes.wake(&repository, name).await
            })
        };
        for (name, is_woken) in [("sound", true), ("broken", false), ("sound", true)] {
            let before = sleepers.woken.load(Ordering::Relaxed);
            asked.store(0, Ordering::Relaxed);
            let asking: Vec<_> = (0..1000).map(|_| ask(name)).collect();
            runtime.block_on(async {
                while asked.load(Ordering::Relaxed) < asking.len() {
                    yield_now().await;
                }
                tell.send(()).expect("it listens");
                for one in asking {
                    assert_eq!(one.await.expect("it ends").is_ok(), is_woken, "{name}");
                }
            });
            assert_eq!(sleepers.woken.load(Ordering::Relaxed) - before, 1, "{name}");
        }
    }
}
