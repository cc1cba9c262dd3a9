//! Running cases on an executor and counting what became of them.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use weft_ir::Graph;
use weft_onnx::LoadError;

use crate::case::{Case, CaseError, DataSet};
use crate::comparison::{compare, compare_type};
use crate::executor::Executor;
use crate::inference::check_inference;

/// What became of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every data set gave the expected outputs.
    Passed,
    /// Something was not as expected.
    Failed(String),
    /// The model asks for what Weft does not claim to have: these operators, or an older standard.
    NotClaimed(Vec<String>),
}

/// What became of many cases.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Summary {
    pub passed: usize,
    /// Name and reason.
    pub failed: Vec<(String, String)>,
    pub not_claimed: Vec<String>,
    /// How many cases ask for each thing that is not claimed.
    pub missing: BTreeMap<String, usize>,
}

/// Runs all cases, telling `watch` of each.
pub fn run_suite(
    cases: &[Case],
    executor: &dyn Executor,
    mut watch: impl FnMut(&Case, &Outcome),
) -> Summary {
    let mut summary = Summary::default();
    for case in cases {
        let outcome = run_case(case, executor);
        watch(case, &outcome);
        match outcome {
            Outcome::Passed => summary.passed += 1,
            Outcome::Failed(why) => summary.failed.push((case.name.clone(), why)),
            Outcome::NotClaimed(missing) => {
                summary.not_claimed.push(case.name.clone());
                for name in missing {
                    *summary.missing.entry(name).or_default() += 1;
                }
            }
        }
    }
    summary
}

/// Runs one case; a panic is a failure like any other.
pub fn run_case(case: &Case, executor: &dyn Executor) -> Outcome {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let (graph, sets) = match case.load() {
            Ok(loaded) => loaded,
            Err(CaseError::Data(why)) => return Outcome::Failed(why),
            Err(CaseError::Model(error)) => return not_loaded(&error),
        };
        if sets.is_empty() {
            return Outcome::Failed("there are no test data".into());
        }
        for (index, set) in sets.into_iter().enumerate() {
            if let Err(why) = run_set(&graph, set, executor) {
                return Outcome::Failed(format!("data set {index}: {why}"));
            }
        }
        Outcome::Passed
    }));
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Outcome::Failed(format!("panicked: {}", text.unwrap_or_default()))
    })
}

fn not_loaded(error: &LoadError) -> Outcome {
    if let Some(operators) = error.unsupported() {
        let name = |entry: &weft_onnx::UnsupportedOperator| match entry.domain.as_str() {
            "" => entry.operator.clone(),
            domain => format!("{domain}.{}", entry.operator),
        };
        return Outcome::NotClaimed(operators.iter().map(name).collect());
    }
    match error.problem() {
        LoadError::Version(why) => Outcome::NotClaimed(vec![format!("a model that {why}")]),
        problem => Outcome::Failed(format!("model: {problem}")),
    }
}

fn run_set(graph: &Graph, set: DataSet, executor: &dyn Executor) -> Result<(), String> {
    check_inference(graph, &set.inputs)?;
    let is_random = graph.nodes().iter().any(|node| !node.operator.is_deterministic());
    let outputs = executor.run(graph, set.inputs)?;
    if outputs.len() < set.outputs.len() {
        return Err(format!("{} outputs expected, {} given", set.outputs.len(), outputs.len()));
    }
    for (index, (expected, actual)) in set.outputs.iter().zip(&outputs).enumerate() {
        let compare = if is_random { compare_type } else { compare };
        compare(expected, actual).map_err(|why| format!("output {index}: {why}"))?;
    }
    Ok(())
}
