//! What is compiled already: trying a candidate that needs nothing else costs the time of its measurement alone.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// What was compiled, or is about to be, for any of the operators that are searched together.
#[derive(Clone, Debug, Default)]
pub(super) struct CompiledCode(Arc<Mutex<HashSet<u64>>>);

impl CompiledCode {
    pub(super) fn insert(&self, code: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(code);
    }

    fn contains(&self, code: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&code)
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
        self.needed[candidate].is_none_or(|code| self.compiled.contains(code))
    }

    /// Notes that a candidate will be compiled.
    pub(super) fn ask_for(&self, candidate: usize) {
        if let Some(code) = self.needed[candidate] {
            self.compiled.insert(code);
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
    }
}
