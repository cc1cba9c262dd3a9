//! The routes: which method and path lead to which endpoint.

use std::borrow::Cow;

use ::http::Method;

use super::path::{Segments, decoded};
use crate::error::ServeError;
use crate::tenants::Access;

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Infer,
    Live,
    Ready,
    ServerMetadata,
    ModelMetadata,
    ModelReady,
    ModelConfig,
    ModelStatistics,
    RepositoryIndex,
    RepositoryLoad,
    RepositoryUnload,
    SystemRegions,
    RegisterSystemRegion,
    UnregisterSystemRegion,
    CudaRegions,
    RegisterCudaRegion,
    UnregisterCudaRegion,
    TraceSettings,
    LogSettings,
    OpenApi,
}

use Endpoint::*;

/// Method, path and endpoint, the most frequent first. `{model}`, `{version}` and `{region}` stand for any one segment.
pub(crate) const ROUTES: &[(Method, &str, Endpoint)] = &[
    (Method::POST, "v2/models/{model}/infer", Infer),
    (Method::POST, "v2/models/{model}/versions/{version}/infer", Infer),
    (Method::GET, "v2/health/live", Live),
    (Method::GET, "v2/health/ready", Ready),
    (Method::GET, "v2", ServerMetadata),
    // Before the path of a model, since `stats` is in its place.
    (Method::GET, "v2/models/stats", ModelStatistics),
    (Method::GET, "v2/models/{model}", ModelMetadata),
    (Method::GET, "v2/models/{model}/versions/{version}", ModelMetadata),
    (Method::GET, "v2/models/{model}/ready", ModelReady),
    (Method::GET, "v2/models/{model}/versions/{version}/ready", ModelReady),
    (Method::GET, "v2/models/{model}/config", ModelConfig),
    (Method::GET, "v2/models/{model}/versions/{version}/config", ModelConfig),
    (Method::GET, "v2/models/{model}/stats", ModelStatistics),
    (Method::GET, "v2/models/{model}/versions/{version}/stats", ModelStatistics),
    (Method::POST, "v2/repository/index", RepositoryIndex),
    (Method::POST, "v2/repository/models/{model}/load", RepositoryLoad),
    (Method::POST, "v2/repository/models/{model}/unload", RepositoryUnload),
    (Method::GET, "v2/systemsharedmemory/status", SystemRegions),
    (Method::GET, "v2/systemsharedmemory/region/{region}/status", SystemRegions),
    (Method::POST, "v2/systemsharedmemory/region/{region}/register", RegisterSystemRegion),
    (Method::POST, "v2/systemsharedmemory/unregister", UnregisterSystemRegion),
    (Method::POST, "v2/systemsharedmemory/region/{region}/unregister", UnregisterSystemRegion),
    (Method::GET, "v2/cudasharedmemory/status", CudaRegions),
    (Method::GET, "v2/cudasharedmemory/region/{region}/status", CudaRegions),
    (Method::POST, "v2/cudasharedmemory/region/{region}/register", RegisterCudaRegion),
    (Method::POST, "v2/cudasharedmemory/unregister", UnregisterCudaRegion),
    (Method::POST, "v2/cudasharedmemory/region/{region}/unregister", UnregisterCudaRegion),
    (Method::GET, "v2/trace/setting", TraceSettings),
    (Method::POST, "v2/trace/setting", TraceSettings),
    (Method::GET, "v2/models/{model}/trace/setting", TraceSettings),
    (Method::POST, "v2/models/{model}/trace/setting", TraceSettings),
    (Method::GET, "v2/logging", LogSettings),
    (Method::POST, "v2/logging", LogSettings),
    (Method::GET, "openapi.json", OpenApi),
];

impl Endpoint {
    /// Who may ask for it.
    pub(super) fn access(self) -> Access {
        match self {
            Live | Ready | OpenApi => Access::Everybody,
            Infer | ServerMetadata | ModelMetadata | ModelReady | ModelConfig | ModelStatistics
            | RepositoryIndex | SystemRegions | CudaRegions => Access::Callers,
            RepositoryLoad
            | RepositoryUnload
            | RegisterSystemRegion
            | UnregisterSystemRegion
            | RegisterCudaRegion
            | UnregisterCudaRegion
            | TraceSettings
            | LogSettings => Access::Administrators,
        }
    }
}

/// A request's endpoint, and the names in its path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Matched<'a> {
    pub(crate) endpoint: Endpoint,
    /// The model or the region; empty where the path has none.
    pub(crate) name: Cow<'a, str>,
    /// Empty where the path has none.
    pub(crate) version: Cow<'a, str>,
}

/// The endpoint of a method and a path.
pub(crate) fn find<'a>(method: &Method, path: &'a str) -> Result<Matched<'a>, ServeError> {
    let segments = Segments::of(path);
    let mut allowed = None;
    for (taken, pattern, endpoint) in ROUTES {
        if let Some((name, version)) = captures(pattern, segments.as_slice()) {
            if taken == method {
                let (name, version) = (decoded(name), decoded(version));
                return Ok(Matched { endpoint: *endpoint, name, version });
            }
            allowed = Some(if *taken == Method::GET { "GET" } else { "POST" });
        }
    }
    Err(match allowed {
        Some(allowed) => ServeError::WrongMethod { path: path.into(), allowed },
        None => ServeError::UnknownPath(path.into()),
    })
}

/// The name and the version in a path, where it is of the pattern.
fn captures<'a>(pattern: &str, segments: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let (mut name, mut version) = ("", "");
    let mut segments = segments.iter();
    for expected in pattern.split('/') {
        let &given = segments.next()?;
        match expected {
            "{version}" => version = given,
            "{model}" | "{region}" => name = given,
            literal if literal == given => continue,
            _ => return None,
        }
        if given.is_empty() {
            return None;
        }
    }
    segments.next().is_none().then_some((name, version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_found_by_its_own_path() {
        for (method, pattern, endpoint) in ROUTES {
            let path = format!("/{pattern}").replace(['{', '}'], "");
            assert_eq!(find(method, &path).unwrap().endpoint, *endpoint, "{path}");
        }
    }

    #[test]
    fn names_are_taken_from_the_path() {
        let matched = find(&Method::POST, "/v2/models/a%20b/versions/3/infer").unwrap();
        assert_eq!((&*matched.name, &*matched.version), ("a b", "3"));
        let matched = find(&Method::GET, "/v2/models/stats").unwrap();
        assert_eq!((matched.endpoint, &*matched.name), (ModelStatistics, ""));
    }

    #[test]
    fn what_is_not_there_and_what_is_asked_for_wrongly_differ() {
        for path in ["/", "/v3", "/v2/models//infer", "/v2/models/a/infer/b", "/v2/models"] {
            let found = find(&Method::POST, path);
            assert!(matches!(found, Err(ServeError::UnknownPath(_))), "{path}: {found:?}");
        }
        let found = find(&Method::GET, "/v2/models/a/infer");
        assert!(matches!(found, Err(ServeError::WrongMethod { allowed: "POST", .. })));
    }
}
