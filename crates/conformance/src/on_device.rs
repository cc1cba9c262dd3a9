//! Any device as an executor: the model is loaded, prepared for the inputs' shapes and run on one partition.

use std::sync::Arc;

use weft_device::{Device, Partition, UnitSet};
use weft_ir::{Graph, Value};

use crate::executor::Executor;

/// One partition of a device.
pub struct OnDevice {
    name: String,
    device: Arc<dyn Device>,
    partition: Arc<dyn Partition>,
}

impl OnDevice {
    /// A partition of the first `units` units among those given.
    pub fn new(device: Arc<dyn Device>, units: &UnitSet) -> Result<Self, String> {
        let partition = device.partition(units).map_err(|error| error.to_string())?;
        let name = format!("{}-{}", device.description().kind, units.len());
        Ok(Self { name, device, partition })
    }
}

impl Executor for OnDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&self, graph: &Graph, inputs: Vec<Option<Value>>) -> Result<Vec<Value>, String> {
        let mut given = Vec::new();
        for (&id, input) in graph.inputs().iter().zip(inputs) {
            match input {
                Some(value) if graph.constant(id).is_none() => given.push(value),
                Some(_) => {
                    return Err(format!(
                        "input '{}' is a constant on a device",
                        graph.value(id).name
                    ));
                }
                None => {}
            }
        }
        let shapes: Vec<Vec<usize>> = given
            .iter()
            .map(|value| match value {
                Value::Tensor(tensor) => tensor.shape().to_vec(),
                _ => Vec::new(),
            })
            .collect();
        let model = self.device.load(&graph.name, graph).map_err(|error| error.to_string())?;
        let executable =
            self.partition.prepare(&*model, &shapes).map_err(|error| error.to_string())?;
        executable.run(&given).map_err(|error| error.to_string())
    }
}
