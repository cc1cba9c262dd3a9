//! Which entries of a folder are looked at, and which names models may have.

/// The longest name of a model: what fits into a folder's name on every common file system.
const MAX_NAME_BYTES: usize = 255;

/// How temporary files of editors, browsers and copying programs end.
const TEMPORARY_ENDINGS: [&str; 10] =
    ["~", ".swp", ".swx", ".tmp", ".temp", ".part", ".partial", ".crdownload", ".bak", ".orig"];

/// True for what nobody put there to be served: hidden entries, temporary files, and what file systems keep for themselves.
pub(crate) fn is_ignored(name: &str) -> bool {
    let is_emacs_lock = name.len() > 1 && name.starts_with('#') && name.ends_with('#');
    name.starts_with('.')
        || is_emacs_lock
        || name == "lost+found"
        || TEMPORARY_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Why a model, or a tenant, cannot be called so; `None` where it can.
pub(crate) fn objection(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("a name may not be empty")
    } else if name.len() > MAX_NAME_BYTES {
        Some("a name may not be longer than 255 bytes")
    } else if name.chars().any(char::is_control) {
        Some("a name may not hold control characters")
    } else if name.trim() != name {
        Some("a name may not begin or end with a space")
    } else if name.contains('/') {
        Some("a name may not hold '/'")
    } else if name == "." || name == ".." {
        Some("a name may not be '.' or '..', which are read as folders in addresses")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_meant_to_be_served_is_passed_over() {
        for name in
            [".git", "..data", "a.onnx~", "#a.onnx#", ".a.onnx.swp", "a.onnx.part", "lost+found"]
        {
            assert!(is_ignored(name), "{name}");
        }
        for name in ["a", "a.onnx", "a.b.c", "#1", "#", "tmp", "größe"] {
            assert!(!is_ignored(name), "{name}");
        }
    }

    #[test]
    fn odd_names_are_names_and_dangerous_ones_are_not() {
        for name in ["resnet 50", "größe", "模型", "a.b-c_d", "1", "a:b", "%41", "🦀"] {
            assert_eq!(objection(name), None, "{name}");
        }
        for name in ["", " a", "a ", "a\nb", "a\u{1b}[2J", "a/b", "..", &"x".repeat(256)] {
            assert!(objection(name).is_some(), "{name:?}");
        }
    }
}
