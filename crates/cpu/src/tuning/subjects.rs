//! The operands of the operators that were tried last, so that a search can go back and forth between operators.

use super::fused_operator::FusedOperator;
use super::subject::{Subject, SubjectError};

/// How much memory the operands kept may take, with the weights packed from them; those of one operator are always kept.
const MOST_BYTES: usize = 192 << 20;

/// Operands by operator, those used last at the end.
#[derive(Default)]
pub(super) struct Subjects(Vec<Subject>);

impl Subjects {
    /// Takes out what an operator is computed with, or makes it.
    pub(super) fn take(&mut self, operator: &FusedOperator) -> Result<Subject, SubjectError> {
        match self.0.iter().position(|subject| subject.operator == *operator) {
            Some(index) => Ok(self.0.remove(index)),
            None => Subject::new(operator),
        }
    }

    /// Puts it back, and drops what was not used for longest where memory runs short.
    pub(super) fn put(&mut self, subject: Subject) {
        self.0.push(subject);
        let mut bytes: usize = self.0.iter().map(Subject::bytes).sum();
        while bytes > MOST_BYTES && self.0.len() > 1 {
            bytes -= self.0.remove(0).bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Activation;
    use crate::tuning::Product;

    fn operator(rows: usize, columns: usize) -> FusedOperator {
        FusedOperator {
            product: Product::Linear { rows, depth: 1024, columns },
            has_bias: false,
            has_residual: false,
            activation: Activation::None,
        }
    }

    #[test]
    fn memory_is_bounded_and_the_last_one_stays() {
        let mut subjects = Subjects::default();
        for columns in 1..20 {
            let subject = subjects.take(&operator(1, 1024 * columns)).unwrap();
            subjects.put(subject);
            let bytes: usize = subjects.0.iter().map(Subject::bytes).sum();
            assert!(bytes <= MOST_BYTES, "{bytes}");
            assert_eq!(subjects.0.last().unwrap().operator, operator(1, 1024 * columns));
        }
        assert!(subjects.0.len() > 1);
        let one = subjects.take(&operator(1, 19 * 1024)).unwrap();
        assert!(subjects.0.iter().all(|subject| subject.operator != one.operator));
    }
}
