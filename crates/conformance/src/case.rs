//! Test cases on disk: a folder with a model, and a folder per set of inputs and expected outputs.

use std::path::{Path, PathBuf};

use weft_ir::{Graph, Value};
use weft_onnx::{LoadError, ValueKind, read_interface, read_value};

/// One model and its data.
#[derive(Clone, Debug)]
pub struct Case {
    /// The folder's name.
    pub name: String,
    folder: PathBuf,
}

/// One set of inputs and the outputs expected for them.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct DataSet {
    pub inputs: Vec<Option<Value>>,
    pub outputs: Vec<Value>,
}

/// A case that cannot be read.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum CaseError {
    Model(LoadError),
    Data(String),
}

/// The cases in a folder, in order of name; only those whose name contains `filter`.
pub fn cases(folder: &Path, filter: &str) -> std::io::Result<Vec<Case>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let folder = entry?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.contains(filter) && folder.join("model.onnx").is_file() {
            found.push(Case { name, folder });
        }
    }
    found.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(found)
}

impl Case {
    /// The model file.
    pub fn model_path(&self) -> PathBuf {
        self.folder.join("model.onnx")
    }

    /// The model and its data sets.
    pub fn load(&self) -> Result<(Graph, Vec<DataSet>), CaseError> {
        let graph = weft_onnx::load(self.model_path()).map_err(CaseError::Model)?;
        let sets = self.data_sets(&graph)?;
        Ok((graph, sets))
    }

    /// The data sets, their inputs in the order of the graph's.
    pub fn data_sets(&self, graph: &Graph) -> Result<Vec<DataSet>, CaseError> {
        let bytes = std::fs::read(self.model_path()).map_err(describe)?;
        let interface = read_interface(bytes.into()).map_err(CaseError::Model)?;
        let mut sets = Vec::new();
        for index in 0.. {
            let folder = self.folder.join(format!("test_data_set_{index}"));
            if !folder.is_dir() {
                break;
            }
            let given = values(&folder, "input", &interface.inputs)?;
            let input = |id: &weft_ir::ValueId| {
                let name = &graph.value(*id).name;
                given.iter().find(|(given, _)| given == name).map(|(_, value)| value.clone())
            };
            let inputs = graph.inputs().iter().map(input).collect();
            let outputs = values(&folder, "output", &interface.outputs)?;
            sets.push(DataSet {
                inputs,
                outputs: outputs.into_iter().map(|(_, value)| value).collect(),
            });
        }
        Ok(sets)
    }
}

/// The values in files `{prefix}_0.pb` and on, with the names that the model gives to their places.
fn values(
    folder: &Path,
    prefix: &str,
    interface: &[(String, ValueKind)],
) -> Result<Vec<(String, Value)>, CaseError> {
    let mut values = Vec::new();
    for (index, (name, kind)) in interface.iter().enumerate() {
        let path = folder.join(format!("{prefix}_{index}.pb"));
        if path.is_file() {
            let bytes = std::fs::read(&path).map_err(describe)?;
            let value = read_value(bytes.into(), kind).map_err(describe)?;
            values.push((name.clone(), value));
        }
    }
    Ok(values)
}

fn describe(error: impl std::fmt::Display) -> CaseError {
    CaseError::Data(format!("test data: {error}"))
}
