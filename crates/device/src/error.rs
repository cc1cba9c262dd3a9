//! What can go wrong between a model and a device.

use weft_ir::GraphError;

/// A device that cannot do what it was asked.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum DeviceError {
    #[error("model '{model}': {source}")]
    Model { model: String, source: Box<GraphError> },
    #[error("unit {unit} does not exist: the device has units {available}")]
    NoSuchUnit { unit: usize, available: String },
    #[error("a partition needs at least one unit")]
    NoUnits,
    #[error("input '{name}': {problem}")]
    Input { name: String, problem: String },
    #[error("model '{model}' was loaded onto another device")]
    ForeignModel { model: String },
    /// The device cannot be used at all: it, its driver or a library is missing, or too old.
    #[error("{device} cannot be used: {why}")]
    Unavailable { device: String, why: String },
    /// The device goes on working: smaller requests may succeed.
    #[error(
        "not enough device memory: {asked_bytes} bytes were asked for and {free_bytes} bytes are free"
    )]
    OutOfMemory { asked_bytes: u64, free_bytes: u64 },
    #[error("kernel {kernel} does not compile:\n{log}")]
    Compile { kernel: String, log: String },
    /// Nothing that lives on the device can be used any more.
    #[error("{device} is lost: {why}")]
    Lost { device: String, why: String },
    /// Every partition that the device keeps at once is in use.
    #[error("{limit} partitions are in use, and no more are kept at once")]
    TooManyPartitions { limit: usize },
    /// An error of one model, and of one of its nodes where it is known.
    #[error("model '{model}'{}: {source}", node_in_words(.node))]
    At { model: String, node: Option<String>, source: Box<DeviceError> },
    #[error("{0}")]
    Failed(String),
}

fn node_in_words(node: &Option<String>) -> String {
    node.as_ref().map(|node| format!(", node '{node}'")).unwrap_or_default()
}

impl DeviceError {
    /// The same error, which says the model it happened in, and the node.
    pub fn at(self, model: &str, node: Option<&str>) -> Self {
        Self::At {
            model: model.to_string(),
            node: node.map(str::to_string),
            source: Box::new(self),
        }
    }

    /// What went wrong, without where it did.
    pub fn cause(&self) -> &Self {
        match self {
            Self::At { source, .. } => source.cause(),
            cause => cause,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_where_it_happened_and_keeps_its_cause() {
        let error = DeviceError::OutOfMemory { asked_bytes: 7, free_bytes: 3 };
        let placed = error.at("resnet", Some("conv1"));
        assert_eq!(
            placed.to_string(),
            "model 'resnet', node 'conv1': \
             not enough device memory: 7 bytes were asked for and 3 bytes are free"
        );
        assert!(matches!(placed.cause(), DeviceError::OutOfMemory { asked_bytes: 7, .. }));
        assert_eq!(
            DeviceError::NoUnits.at("resnet", None).to_string(),
            "model 'resnet': a partition needs at least one unit"
        );
    }
}
