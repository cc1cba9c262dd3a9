//! When the cost model learns anew: beside the session, so that nothing waits for it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

use crate::cost_model::{CostModel, TrainingRows};
use crate::search::{Effort, Expectation, Features};

/// How many times must be new before the model learns again.
const LEAST_NEW: usize = 32;

/// The share of what the model knows that must be new.
const NEW_SHARE: f64 = 0.15;

/// Has the searches go by a model that learns from what they find, and from what was known before.
pub(super) struct Learning {
    /// To the thread that learns, and from it.
    lessons: Sender<Lesson>,
    learned: Receiver<Learned>,
    is_learning: bool,
    /// How many times there are, and how many of them were in the last lesson.
    measured: usize,
    taught: usize,
}

/// What was measured, and which candidates something has to be expected of.
struct Lesson {
    rows: TrainingRows,
    open: Vec<(usize, Features)>,
}

/// What is expected of each of these operators.
type Learned = Vec<(usize, Expectation)>;

impl Learning {
    /// Learns from experience alone, where there is any, and then in a thread that ends with this value.
    pub(super) fn begin<'scope>(
        scope: &'scope Scope<'scope, '_>,
        experience: &'scope TrainingRows,
        seed: u64,
        effort: &mut Effort,
    ) -> Self {
        let first = Lesson { rows: TrainingRows::default(), open: effort.open_features() };
        take_in(effort, &learn(experience, seed, &first));
        let (lessons, to_learn) = channel();
        let (sender, learned) = channel();
        scope.spawn(move || {
            while let Ok(lesson) = to_learn.recv() {
                if sender.send(learn(experience, seed, &lesson)).is_err() {
                    return;
                }
            }
        });
        Self { lessons, learned, is_learning: false, measured: 0, taught: 0 }
    }

    /// Notes one more time, and has it learned from when there is enough that is new.
    pub(super) fn note(&mut self, effort: &mut Effort) {
        self.measured += 1;
        if let Ok(learned) = self.learned.try_recv() {
            self.is_learning = false;
            take_in(effort, &learned);
        }
        let new = self.measured - self.taught;
        let is_enough = new >= LEAST_NEW.max((self.taught as f64 * NEW_SHARE) as usize);
        if is_enough && !self.is_learning {
            let mut lesson = Lesson { rows: TrainingRows::default(), open: effort.open_features() };
            // More rows than a model takes leave it with those before them.
            let _ = effort.add_rows(&mut lesson.rows);
            self.is_learning = self.lessons.send(lesson).is_ok();
            self.taught = self.measured;
        }
    }

    /// Waits for what is being learned; says whether there was anything.
    pub(super) fn settle(&mut self, effort: &mut Effort) -> bool {
        let learned = self.is_learning.then(|| self.learned.recv().ok()).flatten();
        self.is_learning = false;
        learned.map(|learned| take_in(effort, &learned)).is_some()
    }
}

fn learn(experience: &TrainingRows, seed: u64, Lesson { rows, open }: &Lesson) -> Learned {
    let mut all = experience.clone();
    // Rows of another width leave the model with what it has.
    let _ = all.append(rows);
    let Some(model) = CostModel::fit(&all, seed) else { return Vec::new() };
    let expected =
        open.iter().map(|(operator, features)| (*operator, features.expected_by(&model)));
    expected.filter_map(|(operator, expected)| Some((operator, expected?))).collect()
}

fn take_in(effort: &mut Effort, learned: &[(usize, Expectation)]) {
    learned.iter().for_each(|(operator, expected)| effort.search_mut(*operator).expect(expected));
}
