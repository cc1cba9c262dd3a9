//! The models that tables are about, and how fast they should be.

/// What one model at one batch should take at f16 on a whole H200.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Target {
    pub(super) model: &'static str,
    pub(super) batch: usize,
    /// What is promised.
    pub(super) to_close_ms: f64,
    /// What is hoped for.
    pub(super) goal_ms: f64,
}

const fn target(model: &'static str, batch: usize, to_close_ms: f64, goal_ms: f64) -> Target {
    Target { model, batch, to_close_ms, goal_ms }
}

const TARGETS: [Target; 9] = [
    target("resnet50", 1, 0.50, 0.25),
    target("resnet50", 8, 0.90, 0.50),
    target("resnet50", 32, 2.2, 1.5),
    target("vgg16", 1, 0.40, 0.30),
    target("vgg16", 8, 1.1, 0.8),
    target("mobilenet_v3_large", 1, 0.40, 0.20),
    target("mobilenet_v3_large", 8, 0.60, 0.35),
    target("bert_base", 1, 0.80, 0.45),
    target("bert_base", 8, 1.5, 1.0),
];

/// Batches of models that have no target.
const OTHER_BATCHES: [usize; 2] = [1, 8];

/// The models with a target.
pub(super) fn models() -> Vec<String> {
    let mut models: Vec<String> = TARGETS.iter().map(|target| target.model.to_string()).collect();
    models.dedup();
    models
}

/// The batches that a model is timed at where nothing else is asked for.
pub(super) fn batches(model: &str) -> Vec<usize> {
    let targets = TARGETS.iter().filter(|target| target.model == model);
    let batches: Vec<usize> = targets.map(|target| target.batch).collect();
    if batches.is_empty() { OTHER_BATCHES.to_vec() } else { batches }
}

/// The target of a model at a batch.
pub(super) fn find(model: &str, batch: usize) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.model == model && target.batch == batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_a_model_of_the_zoo_and_its_goal_is_the_harder_one() {
        for target in TARGETS {
            assert!(weft_zoo::entry(target.model).is_ok(), "{}", target.model);
            assert!(target.goal_ms < target.to_close_ms, "{target:?}");
        }
    }

    #[test]
    fn models_are_named_once_with_their_batches() {
        assert_eq!(models(), ["resnet50", "vgg16", "mobilenet_v3_large", "bert_base"]);
        assert_eq!(batches("resnet50"), [1, 8, 32]);
        assert_eq!(batches("tiny_resnet"), [1, 8]);
        assert!(find("resnet50", 2).is_none());
    }
}
