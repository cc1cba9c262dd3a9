//! Why requests came to nothing, counted by reason.

use std::collections::BTreeMap;

/// The most reasons that are told apart; what comes after has one reason together.
const MAX_REASONS: usize = 32;
const OTHERS: &str = "other reasons";
/// The longest text of a server that is kept, in characters.
const MAX_EXAMPLE: usize = 200;

/// Counts by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasons(BTreeMap<String, Reason>);

/// One reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason {
    /// How often.
    pub count: u64,
    /// What was said with the first, beyond the reason's name; may be empty.
    pub example: String,
}

impl Reasons {
    /// Counts one.
    pub(crate) fn add(&mut self, name: &str, example: &str) {
        self.add_many(name, 1, example);
    }

    pub(crate) fn add_many(&mut self, name: &str, count: u64, example: &str) {
        let is_known = self.0.contains_key(name) || self.0.len() < MAX_REASONS;
        let name = if is_known { name } else { OTHERS };
        if let Some(reason) = self.0.get_mut(name) {
            reason.count += count;
        } else if count > 0 {
            let example = example.chars().take(MAX_EXAMPLE).collect();
            self.0.insert(name.to_string(), Reason { count, example });
        }
    }

    /// How many there are of all reasons.
    pub fn count(&self) -> u64 {
        self.0.values().map(|reason| reason.count).sum()
    }

    /// Each by its name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Reason)> {
        self.0.iter().map(|(name, reason)| (name.as_str(), reason))
    }

    pub(crate) fn merge(&mut self, other: &Reasons) {
        other.iter().for_each(|(name, reason)| self.add_many(name, reason.count, &reason.example));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_past_the_limit_are_counted_together() {
        let mut reasons = Reasons::default();
        for index in 0..100 {
            reasons.add(&format!("reason {index}"), &"long ".repeat(100));
            reasons.add("reason 0", "");
        }
        assert_eq!(reasons.count(), 200);
        assert_eq!(reasons.iter().count(), MAX_REASONS + 1);
        assert!(reasons.iter().all(|(_, reason)| reason.example.len() <= MAX_EXAMPLE));
        let mut merged = reasons.clone();
        merged.merge(&reasons);
        assert_eq!(merged.count(), 400);
    }
}
