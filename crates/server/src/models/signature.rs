//! What a model takes and gives, as a client sees it.

use weft_ir::{DataType, Dimensions, Graph, GraphError, ValueId};

/// One tensor that a model takes or gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    /// As the model calls it.
    pub name: String,
    /// Of its elements.
    pub data_type: DataType,
    /// `None` where any size is possible; the batch comes first where there is one.
    pub shape: Vec<Option<usize>>,
}

impl TensorSpec {
    /// As clients write it, with -1 for what is open.
    pub(crate) fn wire_shape(&self) -> Vec<i64> {
        let size = |size: &Option<usize>| size.map_or(-1, |size| size as i64);
        self.shape.iter().map(size).collect()
    }
}

/// Everything that a model takes and gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// In the order in which the model takes them.
    pub inputs: Vec<TensorSpec>,
    /// In the order in which the model gives them.
    pub outputs: Vec<TensorSpec>,
    /// The most entries of one request where every tensor begins with the batch; 0 where one does not.
    pub max_batch_size: usize,
}

impl Signature {
    /// Of a graph whose open dimensions are as `dimensions` says, but for the batch, which `largest_batch` bounds.
    pub fn of(
        graph: &Graph,
        dimensions: &Dimensions,
        largest_batch: usize,
    ) -> Result<Self, GraphError> {
        // What changes between a batch of one and of two is what follows the batch.
        let at = |batch| -> Result<_, GraphError> {
            let shapes = graph.input_shapes(&Dimensions { batch, ..dimensions.clone() })?;
            let outputs = outputs(graph, &shapes)?;
            Ok((shapes, outputs))
        };
        let ((inputs_once, outputs_once), (inputs_twice, outputs_twice)) = (at(1)?, at(2)?);
        let names = graph.required_inputs();
        let shapes = inputs_once.iter().zip(&inputs_twice);
        let inputs: Vec<TensorSpec> = names
            .zip(shapes)
            .map(|(id, (once, twice))| TensorSpec {
                name: graph.value(id).name.clone(),
                data_type: declared_type(graph, id).unwrap_or(DataType::F32),
                shape: once.iter().zip(twice).map(|(a, b)| (a == b).then_some(*a)).collect(),
            })
            .collect();
        let outputs = outputs_once
            .into_iter()
            .zip(outputs_twice)
            .map(|(once, twice)| TensorSpec { shape: common(&once.shape, &twice.shape), ..once });
        let outputs: Vec<TensorSpec> = outputs.collect();
        let starts_with_batch = |spec: &TensorSpec| spec.shape.first() == Some(&None);
        let is_batched = !inputs.is_empty() && inputs.iter().chain(&outputs).all(starts_with_batch);
        Ok(Self { inputs, outputs, max_batch_size: if is_batched { largest_batch } else { 0 } })
    }
}

/// The outputs at exact input shapes, as far as they are known.
fn outputs(graph: &Graph, shapes: &[Vec<usize>]) -> Result<Vec<TensorSpec>, GraphError> {
    let specialised = graph.specialise_plainly(shapes)?;
    // Outputs keep their order, and the names that the model gave them.
    let pairs = specialised.graph().outputs().iter().zip(graph.outputs());
    let spec = |(&inner, &outer): (&ValueId, &ValueId)| {
        let fact = specialised.fact(inner);
        TensorSpec {
            name: graph.value(outer).name.clone(),
            data_type: fact
                .data_type
                .or_else(|| declared_type(graph, outer))
                .unwrap_or(DataType::F32),
            shape: fact.dimensions.clone().unwrap_or_default(),
        }
    };
    Ok(pairs.map(spec).collect())
}

fn declared_type(graph: &Graph, id: ValueId) -> Option<DataType> {
    graph.value(id).declared.as_ref().map(|declared| declared.data_type)
}

/// The dimensions that two shapes have in common.
fn common(once: &[Option<usize>], twice: &[Option<usize>]) -> Vec<Option<usize>> {
    once.iter().zip(twice).map(|(a, b)| if a == b { *a } else { None }).collect()
}

#[cfg(test)]
mod tests {
    use weft_zoo::{ZooOptions, build};

    use super::*;

    #[test]
    fn the_batch_is_open_and_the_rest_is_not() {
        let graph = build("tiny_mobilenet_v2", &ZooOptions::default()).unwrap();
        let signature = Signature::of(&graph, &Dimensions::batch(1), 8).unwrap();
        assert_eq!(signature.max_batch_size, 8);
        for spec in signature.inputs.iter().chain(&signature.outputs) {
            assert_eq!(spec.shape[0], None, "{spec:?}");
            assert!(spec.shape[1..].iter().all(Option::is_some), "{spec:?}");
        }
    }
}
