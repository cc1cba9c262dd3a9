//! What a `config.pbtxt` says of a model, as far as it means something here.

mod batching;
mod reader;
mod tensor;
mod version_policy;

pub use batching::{DynamicBatching, QueuePolicy, TimeoutAction};
pub use tensor::{ConfigDataType, ConfigTensor};

use crate::text_format;
use crate::versions::VersionPolicy;
use reader::{Findings, Reader};

/// The file of a version where the configuration names no other.
pub(crate) const DEFAULT_MODEL_FILE: &str = "model.onnx";

/// What runs ONNX models; everything else is a model that Weft cannot read.
const PLATFORMS: [&str; 2] = ["onnxruntime_onnx", "onnx"];
const BACKENDS: [&str; 2] = ["onnxruntime", "onnx"];

/// Fields that are known, and that change nothing here.
const UNUSED: [&str; 11] = [
    "runtime",
    "optimization",
    "instance_group",
    "cc_model_filenames",
    "metric_tags",
    "parameters",
    "model_warmup",
    "model_operations",
    "model_repository_agents",
    "response_cache",
    "model_metrics",
];

/// Fields without which the model would give other answers than were asked for.
const REFUSED: [(&str, &str); 4] = [
    ("sequence_batching", "each request is answered for itself"),
    ("ensemble_scheduling", "a model is one ONNX file"),
    ("batch_input", "no inputs are made by the server"),
    ("batch_output", "outputs are divided along their first dimension"),
];

/// A model's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelConfig {
    /// The name that it gives the model; the folder's where it gives none.
    pub name: Option<String>,
    /// The most items of one request or batch; 0 where the model has no dimension for the batch, `None` where the model
    /// itself shall say.
    pub max_batch_size: Option<u32>,
    /// The inputs that it lists.
    pub inputs: Vec<ConfigTensor>,
    /// The outputs that it lists.
    pub outputs: Vec<ConfigTensor>,
    /// Which versions are served.
    pub version_policy: VersionPolicy,
    /// How requests are gathered, where it says so.
    pub dynamic_batching: Option<DynamicBatching>,
    /// The file of each version, where it is another than `model.onnx`.
    pub model_file: Option<String>,
}

/// A configuration, or `None` where it cannot be used, and what was found on the way, each with its line.
pub(crate) struct ReadConfig {
    pub(crate) config: Option<ModelConfig>,
    pub(crate) problems: Vec<(usize, String)>,
    pub(crate) notes: Vec<(usize, String)>,
}

impl ModelConfig {
    /// Reads the text of a `config.pbtxt`.
    pub(crate) fn read(text: &str) -> ReadConfig {
        let mut findings = Findings::default();
        let config = match text_format::parse(text) {
            Ok(message) => Some(interpret(Reader::root(&message), &mut findings)),
            Err(problem) => {
                findings.problem(problem.line, problem.what);
                None
            }
        };
        findings.problems.sort();
        findings.notes.sort();
        let is_usable = findings.problems.is_empty();
        let Findings { problems, notes } = findings;
        ReadConfig { config: config.filter(|_| is_usable), problems, notes }
    }

    /// The file of each version.
    pub(crate) fn model_file(&self) -> &str {
        self.model_file.as_deref().unwrap_or(DEFAULT_MODEL_FILE)
    }
}

fn interpret(mut root: Reader<'_>, findings: &mut Findings) -> ModelConfig {
    let name = root.text("name", findings).map(|found| found.value.to_string());
    check_known("platform", &PLATFORMS, &mut root, findings);
    check_known("backend", &BACKENDS, &mut root, findings);
    let max_batch_size = root.integer("max_batch_size", 0, findings).map(|found| found.value);
    let inputs = tensor::read_inputs(&mut root, findings);
    let outputs = tensor::read_outputs(&mut root, findings);
    let version_policy = version_policy::read(&mut root, findings);
    let dynamic_batching = batching::read(&mut root, max_batch_size, findings);
    let model_file = model_file(&mut root, findings);
    refuse_decoupled(&mut root, findings);
    root.refuse_all(&REFUSED, findings);
    root.ignore(&UNUSED, findings);
    root.close(findings);
    ModelConfig {
        name,
        max_batch_size,
        inputs,
        outputs,
        version_policy,
        dynamic_batching,
        model_file,
    }
}

fn check_known(
    field: &'static str,
    known: &[&str],
    root: &mut Reader<'_>,
    findings: &mut Findings,
) {
    let Some(found) = root.text(field, findings) else { return };
    if !known.contains(&found.value) {
        let what = format!(
            "{field} '{}' is not supported: models are ONNX files ({field}: \"{}\")",
            found.value, known[0]
        );
        findings.problem(found.line, what);
    }
}

/// A file's name, which must stay inside the version's folder.
fn model_file(root: &mut Reader<'_>, findings: &mut Findings) -> Option<String> {
    let found = root.text("default_model_filename", findings)?;
    let is_plain = !found.value.contains(['/', '\\']) && !found.value.starts_with('.');
    if !is_plain {
        let what = "'default_model_filename' must be the name of a file in the version's folder";
        findings.problem(found.line, what);
    }
    is_plain.then(|| found.value.to_string())
}

fn refuse_decoupled(root: &mut Reader<'_>, findings: &mut Findings) {
    let Some(mut policy) = root.message("model_transaction_policy", findings) else { return };
    if let Some(found) = policy.flag("decoupled", findings).filter(|found| found.value) {
        let what =
            "'model_transaction_policy.decoupled' is not supported: a request has one answer";
        findings.problem(found.line, what);
    }
    policy.close(findings);
}

#[cfg(test)]
mod tests;
