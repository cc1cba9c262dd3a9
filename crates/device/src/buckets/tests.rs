use std::sync::{Arc, Mutex};
use std::time::Duration;

use weft_ir::{Attributes, DataType, GraphBuilder, reference};

use super::*;
use crate::{ExecutionReport, UnitSet};

/// A partition that evaluates by reference, and notes the batch sizes it is asked for.
#[derive(Default)]
struct Noted {
    prepared: Mutex<Vec<usize>>,
    ran: Arc<Mutex<Vec<usize>>>,
    interrupted: Arc<Mutex<Vec<usize>>>,
}

struct Model(Graph);

struct Evaluated {
    graph: Graph,
    ran: Arc<Mutex<Vec<usize>>>,
    interrupted: Arc<Mutex<Vec<usize>>>,
}

impl LoadedModel for Model {
    fn name(&self) -> &str {
        "sums"
    }

    fn graph(&self) -> &Graph {
        &self.0
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl Partition for Noted {
    fn units(&self) -> &UnitSet {
        unreachable!("buckets do not ask")
    }

    fn prepare(
        &self,
        model: &dyn LoadedModel,
        shapes: &[Vec<usize>],
    ) -> Result<Box<dyn Executable>, DeviceError> {
        self.prepared.lock().unwrap().push(shapes[0][0]);
        let graph = model.graph().specialise_plainly(shapes).unwrap().graph().clone();
        let (ran, interrupted) = (self.ran.clone(), self.interrupted.clone());
        Ok(Box::new(Evaluated { graph, ran, interrupted }))
    }
}

impl Evaluated {
    fn evaluate(&self, inputs: &[Value], batches: &Mutex<Vec<usize>>) -> Vec<Value> {
        batches.lock().unwrap().push(inputs[0].tensor().unwrap().shape()[0]);
        let given: Vec<Option<Value>> = inputs.iter().cloned().map(Some).collect();
        reference::evaluate(&self.graph, &given).unwrap()
    }
}

impl Executable for Evaluated {
    fn run(&self, inputs: &[Value]) -> Result<Vec<Value>, DeviceError> {
        Ok(self.evaluate(inputs, &self.ran))
    }

    fn interrupt(&self, inputs: &[Value]) -> Result<Vec<Value>, DeviceError> {
        Ok(self.evaluate(inputs, &self.interrupted))
    }

    fn time_steps(&self, _inputs: &[Value]) -> Result<Vec<Duration>, DeviceError> {
        unreachable!("buckets do not ask")
    }

    fn report(&self) -> &ExecutionReport {
        unreachable!("buckets do not ask")
    }
}

/// `y = x + bias`, and `z`, which has two rows for each row of `x`; `bias` is an input without a batch.
fn model(first: Dimension) -> Model {
    let mut builder = GraphBuilder::new("sums", 21);
    let x = builder.symbolic_input("x", DataType::F32, &[first, Dimension::Known(2)]);
    let bias = builder.input("bias", DataType::F32, &[2]);
    let y = builder.node("Add", &[x, bias], Attributes::new());
    let shape = builder.constant("shape", Tensor::vector(vec![-1i64, 1]));
    let z = builder.node("Reshape", &[y, shape], Attributes::new());
    builder.output("y", y);
    builder.output("z", z);
    let kept = builder.node("Identity", &[bias], Attributes::new());
    builder.output("kept", kept);
    let graph = builder.finish().unwrap();
    Model(graph)
}

fn buckets(partition: &Noted, sizes: &[usize]) -> Result<Buckets, DeviceError> {
    let model = model(Dimension::Symbol("batch".into()));
    Buckets::prepare(partition, &model, sizes, &Dimensions::batch(1))
}

fn inputs(batch: usize) -> Vec<Value> {
    let elements: Vec<f32> = (0..2 * batch).map(|index| index as f32).collect();
    let x = Tensor::from_vec(vec![batch, 2], elements).unwrap();
    vec![x.into(), Tensor::vector(vec![10f32, 20.0]).into()]
}

#[test]
fn sizes_double_up_to_the_largest() {
    assert_eq!(bucket_sizes(8), [1, 2, 4, 8]);
    assert_eq!(bucket_sizes(6), [1, 2, 4, 6]);
    assert_eq!(bucket_sizes(1), [1]);
    assert!(bucket_sizes(0).is_empty());
}

#[test]
fn a_batch_takes_the_smallest_bucket_that_holds_it() {
    let cut = |batch: usize| -> Vec<(Range<usize>, usize)> {
        let parts = parts(batch, &[1, 2, 4, 8]);
        parts.into_iter().map(|part| (part.entries, part.bucket)).collect()
    };
    assert_eq!(cut(0), []);
    assert_eq!(cut(1), [(0..1, 0)]);
    assert_eq!(cut(3), [(0..3, 2)]);
    assert_eq!(cut(8), [(0..8, 3)]);
    assert_eq!(cut(11), [(0..8, 3), (8..11, 2)]);
    assert_eq!(cut(17), [(0..8, 3), (8..16, 3), (16..17, 0)]);
}

#[test]
fn every_batch_gives_its_own_results_whatever_it_is_padded_to() {
    let partition = Noted::default();
    let buckets = buckets(&partition, &[4, 1, 2, 2, 0]).unwrap();
    assert_eq!(*partition.prepared.lock().unwrap(), [1, 2, 4]);
    for (batch, sizes) in
        [(1, vec![1]), (3, vec![4]), (4, vec![4]), (7, vec![4, 4]), (9, vec![4, 4, 1])]
    {
        let outputs = buckets.run(&inputs(batch)).unwrap();
        assert_eq!(std::mem::take(&mut *partition.ran.lock().unwrap()), sizes, "batch {batch}");
        let expected: Vec<f32> = (0..2 * batch)
            .map(|index| index as f32 + if index % 2 == 0 { 10.0 } else { 20.0 })
            .collect();
        let shapes = [vec![batch, 2], vec![2 * batch, 1]];
        for (output, shape) in outputs.iter().zip(shapes) {
            let tensor = output.tensor().unwrap();
            assert_eq!(tensor.shape(), shape, "batch {batch}");
            assert_eq!(tensor.elements::<f32>().unwrap(), expected, "batch {batch}");
        }
        assert_eq!(outputs[2], inputs(batch)[1], "batch {batch}");
    }
}

#[test]
fn what_has_no_batch_runs_for_one_caller_at_a_time() {
    let fixed = model(Dimension::Known(1));
    let partition = Noted::default();
    let buckets = Buckets::prepare(&partition, &fixed, &[1, 2], &Dimensions::batch(1)).unwrap();
    assert_eq!(buckets.sizes(), [1]);
    let mut other = inputs(1);
    other[1] = Tensor::vector(vec![1f32, 2.0]).into();
    let apart = buckets.run_together(&[inputs(1), other.clone()], Urgency::InTurn);
    for (outputs, inputs) in apart.iter().zip([inputs(1), other]) {
        assert_eq!(outputs.as_ref().unwrap(), &buckets.run(&inputs).unwrap());
    }
}

#[test]
fn sizes_are_limited() {
    assert!(buckets(&Noted::default(), &[]).is_err());
    assert!(buckets(&Noted::default(), &(1..40).collect::<Vec<_>>()).is_err());
}

#[test]
fn a_batch_that_is_cut_and_joined_is_what_it_was() {
    let buckets = buckets(&Noted::default(), &[1, 2, 4]).unwrap();
    let whole = inputs(5);
    let parts = [0..1, 1..4, 4..5].map(|entries| {
        let part = buckets.cut(&whole, entries).unwrap();
        buckets.run(&part).unwrap()
    });
    assert_eq!(buckets.join(parts.into()).unwrap(), buckets.run(&whole).unwrap());
}

#[test]
fn inputs_that_disagree_are_refused() {
    let buckets = buckets(&Noted::default(), &[2]).unwrap();
    assert!(buckets.run(&inputs(1)[..1]).is_err());
    let empty = Tensor::from_vec(vec![0, 2], Vec::<f32>::new()).unwrap();
    let error = buckets.run(&[empty.into(), inputs(1)[1].clone()]).unwrap_err().to_string();
    assert!(error.contains("'x'"), "{error}");
}

#[test]
fn an_output_that_follows_nothing_is_not_guessed() {
    assert_eq!(output(2, (Some(6), Some(12))), Some(BatchedOutput::RowsPerEntry(3)));
    assert_eq!(output(2, (Some(5), Some(5))), Some(BatchedOutput::Constant));
    assert_eq!(output(2, (Some(5), Some(10))), None);
    assert_eq!(output(2, (Some(2), Some(3))), None);
    assert_eq!(output(2, (None, Some(3))), None);
}

#[test]
fn callers_that_run_together_get_what_they_get_alone() {
    let partition = Noted::default();
    let buckets = buckets(&partition, &[1, 4]).unwrap();
    let callers = [inputs(1), inputs(2), inputs(1)];
    let together = buckets.run_together(&callers, Urgency::InTurn);
    assert_eq!(*partition.ran.lock().unwrap(), [4]);
    for (inputs, outputs) in callers.iter().zip(together) {
        assert_eq!(outputs.unwrap(), buckets.run(inputs).unwrap());
    }
}

#[test]
fn one_callers_inputs_fail_no_one_else() {
    let buckets = buckets(&Noted::default(), &[1, 4]).unwrap();
    let mut other = inputs(1);
    other[1] = Tensor::vector(vec![1f32, 2.0]).into();
    let callers = [inputs(1), Vec::new(), other.clone()];
    let results = buckets.run_together(&callers, Urgency::InTurn);
    let failed: Vec<bool> = results.iter().map(Result::is_err).collect();
    assert_eq!(failed, [false, true, false]);
    // What all callers must have in common and do not: each is run alone.
    let apart = buckets.run_together(&[inputs(1), other.clone()], Urgency::InTurn);
    assert_eq!(apart[1].as_ref().unwrap(), &buckets.run(&other).unwrap());
}

#[test]
fn what_is_to_run_at_once_interrupts_whether_joined_cut_or_alone() {
    let partition = Noted::default();
    let buckets = buckets(&partition, &[1, 4]).unwrap();
    let mut other = inputs(2);
    other[1] = Tensor::vector(vec![1f32, 2.0]).into();
    for (callers, batches) in [
        (vec![inputs(1)], vec![1]),
        (vec![inputs(1), inputs(2)], vec![4]),
        (vec![inputs(3), inputs(2)], vec![4, 1]),
        (vec![inputs(1), other], vec![1, 4]),
    ] {
        let outcomes = buckets.run_together(&callers, Urgency::AtOnce);
        assert_eq!(std::mem::take(&mut *partition.interrupted.lock().unwrap()), batches);
        assert!(partition.ran.lock().unwrap().is_empty());
        for (inputs, outputs) in callers.iter().zip(outcomes) {
            assert_eq!(outputs.unwrap(), buckets.run(inputs).unwrap());
        }
        partition.ran.lock().unwrap().clear();
    }
}
