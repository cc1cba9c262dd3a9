//! What a server says of itself and of its models as JSON: the messages of gRPC are the documents of HTTP too, so that
//! the two cannot disagree.
//!
//! These messages can be written and read by `serde`: [`ServerMetadataResponse`](inference::ServerMetadataResponse),
//! [`ModelMetadataResponse`](inference::ModelMetadataResponse), [`ModelConfig`](inference::ModelConfig),
//! [`ModelStatisticsResponse`](inference::ModelStatisticsResponse),
//! [`RepositoryIndexResponse`](inference::RepositoryIndexResponse) and the status of shared memory, system's and CUDA's.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::grpc::inference;

/// The body of an answer that says what went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// In words.
    pub error: String,
}

/// Defines how a field that gRPC carries as a number, one of an enumeration, is written by its name.
macro_rules! by_name {
    ($module:ident, $enumeration:ty) => {
        pub(crate) mod $module {
            use super::*;

            pub(crate) fn serialize<S: Serializer>(
                number: &i32,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                let value = <$enumeration>::try_from(*number).unwrap_or_default();
                serializer.serialize_str(value.as_str_name())
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<i32, D::Error> {
                let name = String::deserialize(deserializer)?;
                match <$enumeration>::from_str_name(&name) {
                    Some(value) => Ok(value.into()),
                    None => Err(D::Error::custom(format!("'{name}' is not one of its values"))),
                }
            }
        }
    };
}

by_name!(data_type, inference::DataType);
by_name!(format, inference::model_input::Format);
by_name!(kind, inference::model_instance_group::Kind);
by_name!(timeout_action, inference::model_queue_policy::TimeoutAction);

/// Writes what is absent as what it would be by default.
pub(crate) fn or_default<T: Serialize + Default, S: Serializer>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => value.serialize(serializer),
        None => T::default().serialize(serializer),
    }
}

/// A region of shared memory, known by its name.
pub(crate) trait Named {
    fn name(&self) -> &str;
}

impl Named for inference::system_shared_memory_status_response::RegionStatus {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for inference::cuda_shared_memory_status_response::RegionStatus {
    fn name(&self) -> &str {
        &self.name
    }
}

/// How regions by name, which repeat their names, are written: as a list.
pub(crate) mod named {
    use super::*;

    pub(crate) fn serialize<T: Serialize, S: Serializer>(
        regions: &BTreeMap<String, T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(regions.values())
    }

    pub(crate) fn deserialize<'de, T: Deserialize<'de> + Named, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<String, T>, D::Error> {
        let regions = Vec::<T>::deserialize(deserializer)?;
        Ok(regions.into_iter().map(|region| (region.name().to_owned(), region)).collect())
    }
}
