//! KServe v2 over HTTP: routes, and what each endpoint answers.

mod body;
mod compression;
mod infer;
mod management;
mod openapi;
mod path;
mod reply;
mod routes;

use std::sync::Arc;

use ::http::{Request, Response};
use hyper::body::Incoming;

pub(crate) use self::body::read as read_body;
use self::reply::refused;
use self::routes::{Endpoint, find};
use crate::answer::AnswerBody;
use crate::inference::Serving;

/// Answers a request, whatever it is.
pub(crate) async fn route(
    serving: &Arc<Serving>,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    let (head, body) = request.into_parts();
    let matched = match find(&head.method, head.uri.path()) {
        Ok(matched) => matched,
        Err(error) => return refused(&error),
    };
    let caller = match serving.tenants.let_in(matched.endpoint.access(), &head.headers) {
        Ok(caller) => caller,
        Err(error) => {
            if matched.endpoint == Endpoint::Infer {
                serving.passage(None).end(Some(&error));
            }
            return refused(&error);
        }
    };
    let answer = match matched.endpoint {
        Endpoint::Infer => infer::answer(serving, &caller, &matched, &head.headers, body).await,
        _ => management::answer(serving, &caller, &matched, body).await,
    };
    answer.unwrap_or_else(|error| refused(&error))
}
