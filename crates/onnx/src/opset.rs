//! The versions of the operator sets that a model or a function is written in.

use std::collections::HashMap;
use std::rc::Rc;

use crate::error::{LoadError, NodeProblem};
use crate::limits::MIN_OPSET;
use crate::proto::OperatorSetIdProto;
use crate::support::standard;

/// The imported operator sets, by domain.
#[derive(Debug)]
pub(crate) struct Opsets {
    versions: HashMap<String, i64>,
    /// Those of the model, for what a function does not import itself.
    model: Option<Rc<Opsets>>,
}

impl Opsets {
    /// The imports of a model, or those of a function of the given model.
    pub(crate) fn read(
        imports: &[OperatorSetIdProto],
        model: Option<Rc<Opsets>>,
    ) -> Result<Self, LoadError> {
        let mut versions = HashMap::new();
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
        Ok(Self { versions, model })
    }

    fn find(&self, domain: &str) -> Option<i64> {
        let own = self.versions.get(domain).copied();
        own.or_else(|| self.model.as_ref().and_then(|model| model.find(domain)))
    }

    /// The version of the standard operator set; the oldest one where none is imported.
    pub(crate) fn standard(&self) -> i64 {
        self.find("").unwrap_or(MIN_OPSET)
    }

    /// The domains that are imported beside the standard one, with their versions.
    pub(crate) fn others(&self) -> impl Iterator<Item = (&str, i64)> {
        let all = self.versions.iter().map(|(domain, version)| (domain.as_str(), *version));
        all.filter(|(domain, _)| !domain.is_empty())
    }

    /// The version of a domain's operator set, which must be imported.
    pub(crate) fn version(&self, domain: &str) -> Result<i64, NodeProblem> {
        self.find(domain).ok_or_else(|| {
            let name = if domain.is_empty() { "ai.onnx" } else { domain };
            NodeProblem::Other(format!("the model does not import the operator set of '{name}'"))
        })
    }
}
