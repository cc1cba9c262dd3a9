//! What is compiled already: trying a candidate that needs nothing else costs the time of its measurement alone.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What was compiled, or is about to be, for any of the operators that are searched together.
#[derive(Clone, Debug, Default)]
pub(super) struct CompiledCode(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    compiled: HashSet<u64>,
    /// How much more may be compiled for now.
    allowed: usize,
    /// Only candidates are wanted for which something has to be compiled.
    only_new: bool,
}

impl Default for State {
    fn default() -> Self {
        Self { compiled: HashSet::new(), allowed: usize::MAX, only_new: false }
    }
}

impl CompiledCode {
    /// Lets so many things be compiled from now on, for candidates of any kind.
    pub(super) fn allow(&self, count: usize) {
        let mut state = self.lock();
        (state.allowed, state.only_new) = (count, false);
    }

    /// Wants so many things compiled from now on, and no candidate for which nothing has to be.
    pub(super) fn want(&self, count: usize) {
        let mut state = self.lock();
        (state.allowed, state.only_new) = (count, true);
    }

    /// How much was compiled, or is about to be.
    pub(super) fn len(&self) -> usize {
        self.lock().compiled.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the candidates of one operator need, and what of it there is.
#[derive(Clone, Debug)]
pub(super) struct Code {
    needed: Vec<Option<u64>>,
    pub(super) compiled: CompiledCode,
}

impl Code {
    pub(super) fn new(needed: Vec<Option<u64>>) -> Self {
        Self { needed, compiled: CompiledCode::default() }
    }

    /// A candidate that could be tried at once.
    pub(super) fn is_there(&self, candidate: usize) -> bool {
        let needed = self.needed[candidate];
        needed.is_none_or(|code| self.compiled.lock().compiled.contains(&code))
    }

    /// A candidate that may be proposed: it is there, or something may be compiled.
    pub(super) fn may_be_tried(&self, candidate: usize) -> bool {
        let is_there = self.is_there(candidate);
        let state = self.compiled.lock();
        if is_there { !state.only_new } else { state.allowed > 0 }
    }

    /// A candidate that may be proposed, and could be tried at once.
    pub(super) fn may_be_tried_now(&self, candidate: usize) -> bool {
        self.is_there(candidate) && self.may_be_tried(candidate)
    }

    /// Notes that a candidate will be compiled.
    pub(super) fn ask_for(&self, candidate: usize) {
        let Some(code) = self.needed[candidate] else { return };
        let mut state = self.compiled.lock();
        if state.compiled.insert(code) {
            state.allowed = state.allowed.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_operator_has_compiled_is_there_for_others() {
        let compiled = CompiledCode::default();
        let code = |needed: &[Option<u64>]| Code {
            compiled: compiled.clone(),
            ..Code::new(needed.to_vec())
        };
        let (one, other) = (code(&[Some(1), Some(2), None]), code(&[Some(2), Some(3)]));
        assert_eq!([0, 1, 2].map(|candidate| one.is_there(candidate)), [false, false, true]);
        one.ask_for(1);
        assert!(one.is_there(1) && other.is_there(0) && !other.is_there(1));
        compiled.allow(1);
        assert!(other.may_be_tried(1));
        one.ask_for(0);
        assert!(!other.may_be_tried(1) && other.may_be_tried(0));
        other.ask_for(0);
        compiled.allow(1);
        other.ask_for(0);
        assert!(other.may_be_tried(1), "what is there already takes nothing");
        compiled.want(1);
        assert!(other.may_be_tried(1) && !other.may_be_tried(0) && !one.may_be_tried(2));
    }
}
