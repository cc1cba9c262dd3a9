//! What measuring a table found.

use serde_json::{Value as Json, json};

/// The outcome of one table.
pub(super) struct Finding {
    /// What was measured and how, in a sentence.
    pub(super) about: String,
    /// The table for people.
    pub(super) table: String,
    /// What a reader of the table has to know besides, a line each.
    pub(super) notes: Vec<String>,
    /// The table for machines.
    pub(super) json: Json,
    /// What makes the command fail, a line each.
    pub(super) failures: Vec<String>,
}

impl Finding {
    /// A table that could not be measured.
    pub(super) fn failed(why: &str) -> Self {
        Self {
            about: "could not be measured".into(),
            table: String::new(),
            notes: Vec::new(),
            json: json!({ "error": why }),
            failures: vec![why.to_string()],
        }
    }

    /// The table with everything around it.
    pub(super) fn render(&self, name: &str) -> String {
        let mut text = format!("{name}: {}", self.about);
        if !self.table.is_empty() {
            text = format!("{text}\n\n{}", self.table);
        }
        let failures = self.failures.iter().map(|failure| format!("FAILED {failure}"));
        for line in self.notes.iter().cloned().chain(failures) {
            text = format!("{text}\n{line}");
        }
        text
    }
}

/// Whether a promise is held, as a cell.
pub(in crate::bench) fn held(is_held: bool) -> String {
    if is_held { "yes".into() } else { "NO".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_and_failures_stand_below_the_table() {
        let finding = Finding {
            about: "how fast".into(),
            table: "a\n-".into(),
            notes: vec!["no peer".into()],
            json: Json::Null,
            failures: vec!["resnet50: lost".into()],
        };
        assert_eq!(
            finding.render("latency"),
            "latency: how fast\n\na\n-\nno peer\nFAILED resnet50: lost"
        );
    }
}
