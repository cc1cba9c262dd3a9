//! The traces that a workload names, each read once.

use std::collections::BTreeMap;

use crate::trace::Trace;

/// Traces by the names that a workload gives them.
pub struct Traces<'a> {
    read: &'a mut dyn FnMut(&str) -> Option<Trace>,
    known: BTreeMap<String, Option<Trace>>,
}

impl<'a> Traces<'a> {
    /// Traces that are read by a function when they are first named. Where it has one of them not to give, it has to say
    /// the reason elsewhere.
    pub fn new(read: &'a mut dyn FnMut(&str) -> Option<Trace>) -> Self {
        Self { read, known: BTreeMap::new() }
    }

    pub(super) fn named(&mut self, name: &str) -> Option<&Trace> {
        if !self.known.contains_key(name) {
            let trace = (self.read)(name);
            self.known.insert(name.to_string(), trace);
        }
        self.known.get(name)?.as_ref()
    }
}
