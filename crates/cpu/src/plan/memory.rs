//! The memory of one run: what the steps of a plan read and write.

use std::sync::{Mutex, OnceLock, PoisonError};

use weft_ir::{GraphError, OperatorError, Tensor, Value};

use super::slot::{Operand, Slot};
use crate::SharedOutput;

/// The memory of one run, shared by all workers.
pub(crate) struct Memory<'run> {
    arena: SharedOutput<'run, f32>,
    inputs: &'run [Value],
    /// Which of how many equal parts of the inputs' first axis it is for.
    part: (usize, usize),
    outputs: Vec<SharedOutput<'run, f32>>,
    heap: Vec<Mutex<Option<Value>>>,
    failure: OnceLock<GraphError>,
}

impl<'run> Memory<'run> {
    pub(crate) fn new(
        arena: &'run mut [f32],
        inputs: &'run [Value],
        outputs: Vec<&'run mut [f32]>,
        heap_slots: usize,
    ) -> Self {
        Self {
            arena: SharedOutput::new(arena),
            inputs,
            part: (0, 1),
            outputs: outputs.into_iter().map(SharedOutput::new).collect(),
            heap: (0..heap_slots).map(|_| Mutex::new(None)).collect(),
            failure: OnceLock::new(),
        }
    }

    /// The memory of a run of one of so many equal parts of the batch: its entries of the same inputs and outputs, and an arena of
    /// its own.
    pub(crate) fn of_part(
        &self,
        arena: &'run mut [f32],
        (number, count): (usize, usize),
        heap_slots: usize,
    ) -> Self {
        let own = |output: &SharedOutput<'run, f32>| {
            let each = output.len() / count;
            output.part(number * each, each)
        };
        Self {
            arena: SharedOutput::new(arena),
            inputs: self.inputs,
            part: (number, count),
            outputs: self.outputs.iter().map(own).collect(),
            heap: (0..heap_slots).map(|_| Mutex::new(None)).collect(),
            failure: OnceLock::new(),
        }
    }

    /// Ends the run with an error; the first one counts.
    pub(crate) fn fail(&self, error: GraphError) {
        let _ = self.failure.set(error);
    }

    /// True once a step has failed: the steps after it do nothing.
    pub(crate) fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }

    pub(crate) fn into_failure(self) -> Option<GraphError> {
        self.failure.into_inner()
    }

    /// The elements of one chunk of a dense operand.
    pub(crate) fn read<'a>(&'a self, operand: &'a Operand, chunk: usize) -> &'a [f32] {
        let (start, len) = (chunk * operand.chunk_stride, operand.len());
        match &operand.slot {
            // SAFETY: the buffer plan keeps values that are alive at the same time apart, and a step writes only its
            // outputs, which are never its inputs; so nothing writes these elements while the step reads them.
            Slot::Arena { offset_bytes } => unsafe {
                self.arena.slice(offset_bytes / size_of::<f32>() + start, len)
            },
            // SAFETY: an output is written by the one step that produces it, and read only by later ones.
            Slot::Output(index) => unsafe { self.outputs[*index].slice(start, len) },
            Slot::Input(index) => {
                let all = dense(self.inputs[*index].tensor());
                let (number, count) = self.part;
                let start = all.len() / count * number + start;
                all.get(start..start + len).unwrap_or(&[])
            }
            Slot::Constant(tensor) => dense(Some(tensor)),
            Slot::Heap(_) => &[],
        }
    }

    /// Where one chunk of a dense operand is to be written.
    pub(crate) fn write(&self, operand: &Operand, chunk: usize) -> SharedOutput<'_, f32> {
        let (start, len) = (chunk * operand.chunk_stride, operand.len());
        match &operand.slot {
            Slot::Arena { offset_bytes } => {
                self.arena.part(offset_bytes / size_of::<f32>() + start, len)
            }
            Slot::Output(index) => self.outputs[*index].part(start, len),
            other => unreachable!("{other:?} is never written by a kernel"),
        }
    }

    /// Writes one of several equal parts of a dense operand, one after another.
    ///
    /// # Safety
    ///
    /// Nothing else reads or writes this part meanwhile.
    pub(crate) unsafe fn write_part(&self, operand: &Operand, number: usize, elements: &[f32]) {
        let target = self.write(operand, 0);
        // SAFETY: the caller's promise.
        unsafe { target.slice_mut(number * elements.len(), elements.len()) }
            .copy_from_slice(elements);
    }

    /// A value of any kind, copied out of the arena where it lies there.
    pub(crate) fn value(&self, operand: &Operand) -> Result<Value, OperatorError> {
        match &operand.slot {
            Slot::Input(index) => reshaped(self.own_entries(&self.inputs[*index])?, operand),
            Slot::Constant(tensor) => Ok(tensor.clone().into()),
            Slot::Heap(index) => {
                self.heap[*index].lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(
                    || OperatorError::Invalid("a value is read before it is written".into()),
                )
            }
            Slot::Arena { .. } | Slot::Output(_) => {
                let shape = operand.fact.shape().unwrap_or_default();
                Ok(Tensor::from_vec(shape, self.read(operand, 0).to_vec())?.into())
            }
        }
    }

    /// Those of an input that the run is for.
    fn own_entries(&self, input: &Value) -> Result<Value, OperatorError> {
        let (number, count) = self.part;
        match input {
            Value::Tensor(tensor) if count > 1 => {
                let each = tensor.shape().first().map_or(0, |entries| entries / count);
                Ok(tensor.entries(number * each..(number + 1) * each)?.into())
            }
            other => Ok(other.clone()),
        }
    }

    /// Stores a value where its operand lies.
    pub(crate) fn store(&self, operand: &Operand, value: Value) -> Result<(), OperatorError> {
        if let Slot::Heap(index) = operand.slot {
            *self.heap[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
            return Ok(());
        }
        let tensor = value.into_tensor()?;
        let elements = tensor.elements::<f32>()?;
        if Some(tensor.shape()) != operand.fact.shape().as_deref() {
            let expected = operand.fact.shape().unwrap_or_default();
            return Err(OperatorError::Shapes { left: expected, right: tensor.shape().to_vec() });
        }
        let target = self.write(operand, 0);
        // SAFETY: a reference step stores its outputs from one worker alone, and nothing else runs beside it.
        unsafe { target.slice_mut(0, elements.len()) }.copy_from_slice(elements);
        Ok(())
    }
}

/// A graph input seen through a view operator has another shape than the caller gave it.
fn reshaped(value: Value, operand: &Operand) -> Result<Value, OperatorError> {
    match (value, operand.fact.shape()) {
        (Value::Tensor(tensor), Some(shape)) if tensor.shape() != shape => {
            Ok(tensor.reshaped(shape)?.into())
        }
        (value, _) => Ok(value),
    }
}

fn dense(tensor: Option<&Tensor>) -> &[f32] {
    tensor.and_then(|tensor| tensor.elements::<f32>().ok()).unwrap_or(&[])
}
