//! PyTorch on the same GPU, in a process of its own.

use anyhow::{Context, Result};
use serde_json::{Value as Json, json};

use crate::bench::peer::Peer;

/// The Python side.
const SCRIPT: &str = include_str!("../peer_torch.py");

/// What it imports.
const PACKAGES: &str = "torch, torchvision and transformers";

/// How PyTorch runs a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// One kernel after another, as Python comes to them.
    Eager,
    /// All kernels as one CUDA graph.
    Graph,
}

impl How {
    fn name(self) -> &'static str {
        match self {
            How::Eager => "eager",
            How::Graph => "graph",
        }
    }
}

/// A running PyTorch. It builds what it is asked to time, and keeps it.
pub(in crate::bench) struct Torch {
    peer: Peer,
    /// Its version.
    pub(in crate::bench) version: String,
}

impl Torch {
    /// Starts it; fails where Python or PyTorch are not there, or PyTorch finds no GPU.
    pub(in crate::bench) fn start(python: &str) -> Result<Self> {
        let (peer, hello) = Peer::start(python, SCRIPT, PACKAGES)?;
        let version = hello["version"].as_str().unwrap_or("of unknown version").to_string();
        Ok(Self { peer, version })
    }

    /// How long single runs take in milliseconds, each waited for, after a warm-up.
    pub(super) fn times_ms(
        &mut self,
        model: &str,
        shape: &[usize],
        how: How,
        warm_up: usize,
        runs: usize,
    ) -> Result<Vec<f64>> {
        let answer = self.peer.ask(&json!({
            "do": "measure", "model": model, "shape": shape, "how": how.name(), "warm_up": warm_up, "runs": runs,
        }))?;
        times(&answer).with_context(|| format!("PyTorch's answer has no times: {answer}"))
    }

    /// How long the graphs of a mix take in milliseconds until all have ended, each run waited for: one after another, or each in
    /// a stream of its own.
    pub(in crate::bench) fn mix_times_ms(
        &mut self,
        models: &[(&str, &[usize])],
        is_in_streams: bool,
        (warm_up, runs): (usize, usize),
    ) -> Result<Vec<f64>> {
        let models = models.iter().map(|(model, shape)| json!({"model": model, "shape": shape}));
        let models: Vec<Json> = models.collect();
        let how = if is_in_streams { "streams" } else { "turns" };
        let answer = self.peer.ask(&json!({
            "do": "mix", "models": models, "how": how, "warm_up": warm_up, "runs": runs,
        }))?;
        times(&answer).with_context(|| format!("PyTorch's answer has no times: {answer}"))
    }
}

fn times(answer: &Json) -> Option<Vec<f64>> {
    let times: Option<Vec<f64>> = answer["ms"].as_array()?.iter().map(Json::as_f64).collect();
    times.filter(|times| !times.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_times_is_no_answer() {
        assert_eq!(times(&json!({ "ms": [1.5, 2] })), Some(vec![1.5, 2.0]));
        for answer in [json!({}), json!({ "ms": [] }), json!({ "ms": 1 }), json!({ "ms": ["1"] })] {
            assert_eq!(times(&answer), None, "{answer}");
        }
    }

    #[test]
    fn what_cannot_be_started_says_so() {
        let error = Torch::start("weft-has-no-such-python").err().unwrap().to_string();
        assert!(error.contains("weft-has-no-such-python") && error.contains("torch"), "{error}");
    }
}
