//! The description of the HTTP interface, for programs.

/// An OpenAPI document.
pub(super) const DOCUMENT: &str = include_str!("openapi.json");

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::super::routes::ROUTES;
    use super::*;

    #[test]
    fn every_route_is_described_and_nothing_else() {
        let document: Json = serde_json::from_str(DOCUMENT).unwrap();
        let paths = document["paths"].as_object().unwrap();
        for (method, path, _) in ROUTES {
            let described = &paths[&format!("/{path}")][method.as_str().to_lowercase()];
            assert!(described["summary"].is_string(), "{method} /{path}");
            assert!(described["responses"].is_object(), "{method} /{path}");
        }
        let described: usize = paths.values().map(|path| path.as_object().unwrap().len()).sum();
        assert_eq!(described, ROUTES.len());
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document: Json = serde_json::from_str(DOCUMENT).unwrap();
        let mut open = vec![&document];
        while let Some(value) = open.pop() {
            match value {
                Json::Object(members) => {
                    if let Some(Json::String(target)) = members.get("$ref") {
                        let pointer = target.strip_prefix('#').unwrap();
                        assert!(document.pointer(pointer).is_some(), "{target}");
                    }
                    open.extend(members.values());
                }
                Json::Array(items) => open.extend(items),
                _ => {}
            }
        }
    }
}
