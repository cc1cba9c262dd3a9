//! A table of a text, whose keys are asked for one by one.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::DeTable;

use super::item::Item;
use super::lines::Lines;
use super::problems::Problems;

/// A table. It remembers what it was asked for, so that keys which nobody knows are found.
pub struct Section<'a> {
    table: &'a DeTable<'a>,
    lines: &'a Lines,
    line: usize,
    asked: Vec<&'static str>,
}

impl<'a> Section<'a> {
    pub(super) fn root(table: &'a DeTable<'a>, lines: &'a Lines) -> Self {
        Self::new(table, lines, 1)
    }

    pub(super) fn new(table: &'a DeTable<'a>, lines: &'a Lines, line: usize) -> Self {
        Self { table, lines, line, asked: Vec::new() }
    }

    /// The line it begins on.
    pub fn line(&self) -> usize {
        self.line
    }

    /// What a key stands for; that it is missing is a problem.
    pub fn required(&mut self, key: &'static str, problems: &mut Problems) -> Option<Item<'a>> {
        let item = self.optional(key);
        if item.is_none() {
            problems.note(self.line, format!("'{key}' is missing"));
        }
        item
    }

    /// What a key stands for, where it is there.
    pub fn optional(&mut self, key: &'static str) -> Option<Item<'a>> {
        self.asked.push(key);
        let (name, value) = self.table.get_key_value(key)?;
        Some(Item::new(name.get_ref(), name.span(), value, self.lines))
    }

    /// Every entry, where any name may be a key.
    pub fn entries(self) -> impl Iterator<Item = Item<'a>> {
        let lines = self.lines;
        let entries = self.table.iter();
        entries.map(move |(name, value)| Item::new(name.get_ref(), name.span(), value, lines))
    }

    /// Notes the keys that were not asked for; what is known is said with the first of them.
    pub fn close(self, problems: &mut Problems) {
        let is_unknown =
            |name: &&Spanned<Cow<'_, str>>| !self.asked.contains(&name.get_ref().as_ref());
        for (index, name) in self.table.keys().filter(is_unknown).enumerate() {
            let known = match index {
                0 => format!("; known are {}", self.asked.join(", ")),
                _ => String::new(),
            };
            let what = format!("unknown key '{}'{known}", name.get_ref());
            problems.note(self.lines.line_at(name.span().start), what);
        }
    }
}
