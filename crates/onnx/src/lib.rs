//! Reading and writing ONNX model files.

mod attribute;
mod build;
mod capture;
mod declared;
mod error;
mod external;
mod function;
pub mod limits;
mod opset;
mod proto;
mod save;
mod scan;
mod store;
mod support;
mod tensor;
mod value;
mod write;

use std::path::Path;

use bytes::Bytes;
use prost::Message;
use weft_ir::Graph;

pub use error::{LoadError, NodeProblem, UnsupportedOperator};
pub use save::{SaveError, save, save_with_external_data, to_bytes};
pub use value::{Interface, ValueKind, read_interface, read_tensor, read_value};

use build::Builder;
use function::Functions;
use limits::MIN_IR_VERSION;
use opset::Opsets;
use proto::ModelProto;
use tensor::TensorReader;

/// The last file format in which an initialiser had to be listed as an input too.
const LAST_IR_WITH_INITIALISED_INPUTS: i64 = 3;

/// Reads a model file; tensors may lie in other files in its folder.
pub fn load(path: impl AsRef<Path>) -> Result<Graph, LoadError> {
    let path = path.as_ref();
    let read = || {
        let bytes = weft_mapped_file::open(path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        load_bytes(bytes, Some(folder.unwrap_or(Path::new("."))))
    };
    read().map_err(|problem| LoadError::InFile {
        path: path.to_path_buf(),
        problem: Box::new(problem),
    })
}

/// Reads a model; tensors that lie in other files are looked for in `folder` and refused where there is none.
pub fn load_bytes(bytes: Bytes, folder: Option<&Path>) -> Result<Graph, LoadError> {
    scan::check(&bytes)?;
    let model = ModelProto::decode(bytes)?;
    let version = model.ir_version.unwrap_or(0);
    if version < MIN_IR_VERSION {
        return Err(LoadError::Version(format!(
            "is of file format {version}; the oldest that is read is {MIN_IR_VERSION}"
        )));
    }
    let graph = model.graph.as_ref();
    let graph = graph.ok_or_else(|| LoadError::Version("holds no graph".into()))?;
    let functions = Functions::new(&model.functions);
    support::check(graph, &functions)?;
    let opsets = Opsets::read(&model.opset_import, None)?;
    let reader = TensorReader::new(folder);
    let initialised_inputs_are_constants = version <= LAST_IR_WITH_INITIALISED_INPUTS;
    Builder::new(&functions, reader, opsets, initialised_inputs_are_constants).model(graph)
}
