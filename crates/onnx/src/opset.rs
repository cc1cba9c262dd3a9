//! The versions of the operator sets that a model or a function is written in.

use std::collections::HashMap;

use crate::error::{LoadError, NodeProblem};
use crate::limits::MIN_OPSET;
use crate::proto::OperatorSetIdProto;
use crate::support::standard;

/// The imported operator sets, by domain.
#[derive(Debug, Default)]
pub(crate) struct Opsets(HashMap<String, i64>);

impl Opsets {
    /// The imports of a model, or those of a function on top of its caller's.
    pub(crate) fn read(
        imports: &[OperatorSetIdProto],
        around: Option<&Opsets>,
    ) -> Result<Self, LoadError> {
        let mut versions = around.map(|opsets| opsets.0.clone()).unwrap_or_default();
        for import in imports {
            let domain = standard(import.domain.as_deref().unwrap_or(""));
            let version = import.version.unwrap_or(0);
            if domain.is_empty() && version < MIN_OPSET {
                return Err(LoadError::Version(format!(
                    "is written in operator set {version}; the oldest that is read is {MIN_OPSET}"
                )));
            }
            versions.insert(domain.to_string(), version);
        }
        Ok(Self(versions))
    }

    /// The version of the standard operator set; the oldest one where none is imported.
    pub(crate) fn standard(&self) -> i64 {
        self.0.get("").copied().unwrap_or(MIN_OPSET)
    }

    /// The version of a domain's operator set, which must be imported.
    pub(crate) fn version(&self, domain: &str) -> Result<i64, NodeProblem> {
        self.0.get(domain).copied().ok_or_else(|| {
            let name = if domain.is_empty() { "ai.onnx" } else { domain };
            NodeProblem::Other(format!("the model does not import the operator set of '{name}'"))
        })
    }
}
