//! Writing model files.

use std::fs::File;
use std::path::{Path, PathBuf};

use prost::Message;
use weft_ir::Graph;

use crate::store::DataFile;
use crate::write::Writer;

/// The most bytes that readers accept in one message.
const MAX_MESSAGE_BYTES: usize = i32::MAX as usize;

/// A model that cannot be written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum SaveError {
    #[error("node '{node}' ({operator}) was made by a rewrite, which ONNX has no operator for")]
    Rewritten { node: String, operator: String },
    #[error(
        "the model takes {bytes} bytes, more than a file may; its tensors must go into a file beside it"
    )]
    TooLarge { bytes: usize },
    #[error("cannot be written: {0}")]
    Unwritable(#[from] std::io::Error),
    #[error("'{}': {problem}", path.display())]
    InFile { path: PathBuf, problem: Box<SaveError> },
}

/// The model as the content of a file.
pub fn to_bytes(graph: &Graph) -> Result<Vec<u8>, SaveError> {
    encode(Writer::new(None), graph)
}

/// Writes a model file.
pub fn save(graph: &Graph, path: impl AsRef<Path>) -> Result<(), SaveError> {
    let path = path.as_ref();
    in_file(path, || {
        let content = to_bytes(graph)?;
        Replacement::of(path)?.write(&content)
    })
}

/// Writes a model file and, beside it, one with the elements of its large tensors, which is called like the model
/// with `.data` at the end. The elements are aligned, so that they are used where they lie when the model is loaded.
pub fn save_with_external_data(graph: &Graph, path: impl AsRef<Path>) -> Result<(), SaveError> {
    let path = path.as_ref();
    in_file(path, || {
        let mut location = path.file_name().unwrap_or_default().to_os_string();
        location.push(".data");
        let data = Replacement::of(&path.with_file_name(&location))?;
        let file = File::create(&data.temporary)?;
        let mut beside = DataFile::new(location.to_string_lossy().into_owned(), file);
        let content = encode(Writer::new(Some(&mut beside)), graph)?;
        beside.finish()?;
        let model = Replacement::of(path)?;
        std::fs::write(&model.temporary, &content)?;
        data.take_place()?;
        model.take_place()
    })
}

fn encode(writer: Writer<'_>, graph: &Graph) -> Result<Vec<u8>, SaveError> {
    let model = writer.model(graph)?;
    let bytes = model.encoded_len();
    if bytes > MAX_MESSAGE_BYTES {
        return Err(SaveError::TooLarge { bytes });
    }
    Ok(model.encode_to_vec())
}

fn in_file(path: &Path, write: impl FnOnce() -> Result<(), SaveError>) -> Result<(), SaveError> {
    write().map_err(|problem| SaveError::InFile {
        path: path.to_path_buf(),
        problem: Box::new(problem),
    })
}

/// A file that takes another's place once it is complete. The graph at hand may be a view of that other file.
struct Replacement {
    temporary: PathBuf,
    path: PathBuf,
}

impl Replacement {
    fn of(path: &Path) -> Result<Self, SaveError> {
        let Some(name) = path.file_name() else {
            return Err(std::io::Error::from(std::io::ErrorKind::InvalidFilename).into());
        };
        let mut temporary = name.to_os_string();
        temporary.push(format!(".{}.part", std::process::id()));
        Ok(Self { temporary: path.with_file_name(temporary), path: path.to_path_buf() })
    }

    fn write(self, content: &[u8]) -> Result<(), SaveError> {
        std::fs::write(&self.temporary, content)?;
        self.take_place()
    }

    fn take_place(self) -> Result<(), SaveError> {
        std::fs::rename(&self.temporary, &self.path)?;
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // Gone already where it has taken its place.
        let _ = std::fs::remove_file(&self.temporary);
    }
}
