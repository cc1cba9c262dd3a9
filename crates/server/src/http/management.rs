//! Every endpoint but inference.

use std::sync::Arc;

use ::http::{Response, StatusCode};
use bytes::Bytes;
use hyper::body::Incoming;
use serde_json::{Value as Json, json as made};
use weft_protocol::ProtocolError;

use super::body;
use super::openapi;
use super::reply::{JSON, empty, json, written};
use super::routes::{Endpoint, Matched};
use crate::answer::AnswerBody;
use crate::error::ServeError;
use crate::inference::Serving;
use crate::shared_memory::no_cuda_region;
use crate::tenants::Caller;

/// Answers a request to any endpoint but inference.
pub(super) async fn answer(
    serving: &Arc<Serving>,
    caller: &Caller,
    matched: &Matched<'_>,
    body: Incoming,
) -> Result<Response<AnswerBody>, ServeError> {
    let (name, version) = (&*matched.name, &*matched.version);
    let asked =
        async || -> Result<Json, ServeError> { parse(&body::read(body, &serving.limits).await?) };
    Ok(match matched.endpoint {
        Endpoint::Live => empty(StatusCode::OK),
        Endpoint::Ready => empty(ready(serving.is_ready())),
        Endpoint::ModelReady => {
            let is_ready = serving.is_model_ready(caller, name, version);
            if !is_ready {
                caller.check_sees(name)?;
                serving.models.find(name, version)?;
            }
            empty(ready(is_ready))
        }
        Endpoint::ServerMetadata => json(&serving.server_metadata()),
        Endpoint::ModelMetadata => json(&serving.model_metadata(caller, name, version).await?),
        Endpoint::ModelConfig => json(&serving.model_config(caller, name, version).await?),
        Endpoint::ModelStatistics => json(&serving.model_statistics(caller, name, version)?),
        Endpoint::RepositoryIndex => {
            let only_ready = asked().await?["ready"].as_bool().unwrap_or(false);
            json(&serving.clone().repository_index(caller, only_ready).await?)
        }
        Endpoint::RepositoryLoad => {
            let config = config(asked().await?)?;
            serving.clone().load_model(name.into(), config).await?;
            empty(StatusCode::OK)
        }
        Endpoint::RepositoryUnload => {
            serving.clone().unload_model(name.into()).await?;
            empty(StatusCode::OK)
        }
        Endpoint::SystemRegions => json(&serving.system_regions(caller, name)?),
        Endpoint::RegisterSystemRegion => {
            let asked = asked().await?;
            let key = asked["key"].as_str().ok_or_else(|| lacks("key"))?;
            let size_bytes = asked["byte_size"].as_u64().ok_or_else(|| lacks("byte_size"))?;
            let offset_bytes = match &asked["offset"] {
                Json::Null => 0,
                offset => offset.as_u64().ok_or_else(|| lacks("offset"))?,
            };
            serving.regions.of(caller).register(name, key, offset_bytes, size_bytes)?;
            empty(StatusCode::OK)
        }
        Endpoint::UnregisterSystemRegion => {
            serving.regions.of(caller).unregister(name);
            empty(StatusCode::OK)
        }
        Endpoint::CudaRegions => {
            no_cuda_region(name)?;
            json(&made!([]))
        }
        Endpoint::RegisterCudaRegion => return Err(ServeError::no_cuda_shared_memory()),
        Endpoint::UnregisterCudaRegion => empty(StatusCode::OK),
        Endpoint::TraceSettings => return Err(ServeError::no_such_settings("trace")),
        Endpoint::LogSettings => return Err(ServeError::no_such_settings("log")),
        Endpoint::OpenApi => written(JSON, Bytes::from_static(openapi::DOCUMENT.as_bytes())),
        Endpoint::Infer => unreachable!("inference has its own path"),
    })
}

fn ready(is_ready: bool) -> StatusCode {
    if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

/// A document; an empty body is an empty one.
fn parse(body: &Bytes) -> Result<Json, ServeError> {
    if body.is_empty() {
        return Ok(made!({}));
    }
    let malformed = |error| ProtocolError::Malformed(format!("the body is no JSON: {error}"));
    Ok(serde_json::from_slice(body).map_err(malformed)?)
}

fn lacks(member: &str) -> ServeError {
    ProtocolError::Malformed(format!("'{member}' is missing, or not what it should be")).into()
}

/// The configuration in a request to load.
fn config(asked: Json) -> Result<Option<String>, ServeError> {
    let Json::Object(parameters) = &asked["parameters"] else { return Ok(None) };
    let mut config = None;
    for (name, value) in parameters {
        match (name.as_str(), value) {
            ("config", Json::String(text)) => config = Some(text.clone()),
            _ => {
                let what = format!("the parameter '{name}' of a request to load");
                return Err(ProtocolError::Unsupported(what).into());
            }
        }
    }
    Ok(config)
}
