//! The key that a request carries.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// How `Authorization` names a key.
const SCHEME: &[u8] = b"bearer";

/// What a request says of who sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presented<'a> {
    Nothing,
    Key(&'a str),
    /// Several keys, or one that is no text.
    Unclear,
}

/// The key of `X-API-Key`, else that of `Authorization: Bearer`. Other schemes of authorisation are others' business, such
/// as a proxy's.
pub(super) fn presented(headers: &HeaderMap) -> Presented<'_> {
    let plain = one(headers.get_all(API_KEY).iter().map(HeaderValue::as_bytes));
    match plain {
        Presented::Nothing => one(headers.get_all(AUTHORIZATION).iter().filter_map(bearer)),
        plain => plain,
    }
}

fn one<'a>(mut keys: impl Iterator<Item = &'a [u8]>) -> Presented<'a> {
    let Some(first) = keys.next() else { return Presented::Nothing };
    match str::from_utf8(first) {
        Ok(key) if keys.next().is_none() => Presented::Key(key.trim()),
        _ => Presented::Unclear,
    }
}

fn bearer(value: &HeaderValue) -> Option<&[u8]> {
    let value = value.as_bytes();
    let (scheme, key) = value.split_at_checked(SCHEME.len())?;
    let key = key.strip_prefix(b" ").or(key.is_empty().then_some(key))?;
    scheme.eq_ignore_ascii_case(SCHEME).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_either_header() {
        let key = Presented::Key("k");
        for (given, found) in [
            (&[("authorization", "Bearer k")][..], key),
            (&[("authorization", "bearer   k ")], key),
            (&[("x-api-key", "k")], key),
            (&[("x-api-key", "k"), ("authorization", "Bearer of-a-proxy")], key),
            (&[("authorization", "Basic dXNlcg=="), ("authorization", "Bearer k")], key),
            (&[], Presented::Nothing),
            (&[("authorization", "Basic dXNlcg==")], Presented::Nothing),
            (&[("authorization", "Bearerk")], Presented::Nothing),
            (&[("authorization", "")], Presented::Nothing),
            (&[("authorization", "Bearer")], Presented::Key("")),
            (&[("x-api-key", "")], Presented::Key("")),
            (&[("x-api-key", "k"), ("x-api-key", "k")], Presented::Unclear),
            (&[("authorization", "Bearer k"), ("authorization", "Bearer l")], Presented::Unclear),
            (&[("x-api-key", "\u{e9}")], Presented::Key("\u{e9}")),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in given {
                let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
                headers.append(*name, value);
            }
            assert_eq!(presented(&headers), found, "{given:?}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(API_KEY, HeaderValue::from_bytes(b"\xff").unwrap());
        assert_eq!(presented(&headers), Presented::Unclear);
    }
}
