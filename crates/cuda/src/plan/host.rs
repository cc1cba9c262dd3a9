//! What the host does of a plan, and the values that it keeps meanwhile.

use weft_ir::{Inputs, Operator, OperatorError, Value};

use super::steps::{HostOperand, HostSource};

/// The values of one run that lie on the host.
#[derive(Default)]
pub(crate) struct HostValues {
    given: Vec<Value>,
    slots: Vec<Option<Value>>,
}

impl HostValues {
    /// Nothing but what the caller gives.
    pub(crate) fn new(given: Vec<Value>, slot_count: usize) -> Self {
        Self { given, slots: vec![None; slot_count] }
    }

    /// A value as a step reads it.
    pub(crate) fn get(&self, operand: &HostOperand) -> Result<Value, OperatorError> {
        let missing = || OperatorError::Invalid("a value is read before it is written".into());
        let value = match &operand.source {
            HostSource::Input(index) => self.given.get(*index).cloned().ok_or_else(missing)?,
            HostSource::Slot(slot) => self.slots[*slot].clone().ok_or_else(missing)?,
            HostSource::Constant(tensor) => tensor.clone().into(),
        };
        match &operand.shape {
            Some(shape) => Ok(value.into_tensor()?.reshaped(shape.clone())?.into()),
            None => Ok(value),
        }
    }

    /// Keeps a value for later steps.
    pub(crate) fn put(&mut self, slot: usize, value: Value) {
        self.slots[slot] = Some(value);
    }

    /// Evaluates a node as its operator defines itself, and keeps its outputs.
    pub(crate) fn evaluate(
        &mut self,
        operator: &dyn Operator,
        inputs: &[Option<HostOperand>],
        outputs: &[Option<usize>],
    ) -> Result<(), OperatorError> {
        let values: Vec<Option<Value>> = inputs
            .iter()
            .map(|operand| operand.as_ref().map(|operand| self.get(operand)).transpose())
            .collect::<Result<_, _>>()?;
        let results = operator.evaluate(&Inputs::new(&values, outputs.len()))?;
        if results.len() < outputs.len() {
            let problem =
                format!("gives {} outputs where {} are asked for", results.len(), outputs.len());
            return Err(OperatorError::Invalid(problem));
        }
        for (slot, result) in outputs.iter().zip(results) {
            if let Some(slot) = slot {
                self.put(*slot, result);
            }
        }
        Ok(())
    }
}
