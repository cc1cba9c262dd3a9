//! The standard's node tests, on the reference executor and on models that were saved and loaded again.

use std::path::PathBuf;

use weft_conformance::{Executor, Reference, RoundTrip, cases, run_suite};

/// How many cases must pass; the rest belong to operators that are not claimed.
const MIN_PASSED: usize = 1200;

/// The folder of the standard's test cases, from the environment.
fn data_folder() -> PathBuf {
    let folder = std::env::var_os("WEFT_ONNX_DATA").expect(
        "WEFT_ONNX_DATA must name the folder onnx/backend/test/data/node of the PyPI package onnx==1.22.0; \
         `make test` installs the package and sets it",
    );
    folder.into()
}

fn check(executor: &dyn Executor) {
    let folder = data_folder();
    let cases = cases(&folder, "").expect("WEFT_ONNX_DATA names a folder");
    let summary = run_suite(&cases, executor, |_, _| ());
    let failures: Vec<String> =
        summary.failed.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    assert!(failures.is_empty(), "{} cases fail:\n{}", failures.len(), failures.join("\n"));
    assert!(
        summary.passed >= MIN_PASSED,
        "{} cases pass, {} are not claimed for lack of {:?}",
        summary.passed,
        summary.not_claimed.len(),
        summary.missing
    );
}

#[test]
fn the_reference_executor_conforms() {
    check(&Reference);
}

#[test]
fn models_mean_the_same_after_being_saved_and_loaded() {
    check(&RoundTrip);
}
