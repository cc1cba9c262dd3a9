//! `weft infer`: one run of a model on arrays.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use weft_device::UnitSet;
use weft_ir::{Graph, Tensor, Value, ValueId};

use crate::arrays;
use crate::device::DeviceOptions;
use crate::model_file::{self, DimensionOptions};
use crate::terminal;
use crate::tuning::TuningOptions;

#[derive(Args)]
pub(crate) struct Options {
    /// The model: an ONNX file, or zoo:NAME
    model: String,
    /// An input as NAME=FILE.npy, or just FILE.npy where the model has one input; may be given more than once
    #[arg(long = "input", value_name = "[NAME=]FILE")]
    inputs: Vec<String>,
    /// Where an output goes, as NAME=FILE.npy, or just FILE.npy for the first one; may be given more than once
    #[arg(long = "output", value_name = "[NAME=]FILE")]
    outputs: Vec<String>,
    #[command(flatten)]
    device: DeviceOptions,
    /// Cores of a CPU to run on, for example 0,1 or 0-3 [default: all]
    #[arg(long, value_name = "CORES")]
    cores: Option<UnitSet>,
    /// SMs of a GPU to run on, at least [default: all]
    #[arg(long, value_name = "COUNT")]
    sms: Option<usize>,
    /// Make up random values for inputs that are not given, from this seed
    #[arg(long, value_name = "SEED")]
    random: Option<u64>,
    /// Batch size of made-up inputs
    #[arg(long, default_value_t = 1)]
    batch: usize,
    #[command(flatten)]
    dimensions: DimensionOptions,
    #[command(flatten)]
    tuning: TuningOptions,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let path = model_file::resolve(&options.model)?;
    let graph = model_file::load(&path)?;
    let inputs = inputs(options, &graph)?;
    let targets = outputs(options, &graph)?;
    let shapes: Vec<Vec<usize>> = inputs.iter().map(|tensor| tensor.shape().to_vec()).collect();
    let device = options.device.open()?;
    options.tuning.apply(&device)?;
    let units = device.chosen_units(options.cores.as_ref(), options.sms)?;
    let partition = device.as_device().partition(&units)?;
    let model = device.as_device().load(&model_file::name(&path), &graph)?;
    let executable = partition.prepare(&*model, &shapes)?;
    let values: Vec<Value> = inputs.into_iter().map(Value::Tensor).collect();
    let start = Instant::now();
    let results = executable.run(&values)?;
    let elapsed = start.elapsed();
    for (&id, value) in graph.outputs().iter().zip(&results) {
        let name = &graph.value(id).name;
        let Value::Tensor(tensor) = value else {
            terminal::print(&format!("{name}: a sequence or optional"))?;
            continue;
        };
        terminal::print(&format!(
            "{name}: {}{:?}{}",
            tensor.data_type(),
            tensor.shape(),
            range(tensor)
        ))?;
    }
    for (index, file) in targets {
        let tensor = results[index].tensor().context("a sequence cannot be written as an array")?;
        arrays::write(&file, tensor)?;
    }
    terminal::print(&format!(
        "{:.2} ms on {}",
        elapsed.as_secs_f64() * 1e3,
        device.in_words(&units)
    ))?;
    Ok(())
}

/// Least, greatest and mean element: enough to see at a glance whether a result is sane.
fn range(tensor: &Tensor) -> String {
    let Ok(elements) = tensor.to_f64s() else { return String::new() };
    if elements.is_empty() {
        return String::new();
    }
    let least = elements.iter().copied().fold(f64::INFINITY, f64::min);
    let most = elements.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mean = elements.iter().sum::<f64>() / elements.len() as f64;
    format!(", {least:.4} to {most:.4}, mean {mean:.4}")
}

fn names(graph: &Graph, ids: impl Iterator<Item = ValueId>) -> String {
    ids.map(|id| format!("'{}'", graph.value(id).name)).collect::<Vec<_>>().join(", ")
}

/// `NAME=FILE` or `FILE`, with the index of the value it names.
fn named(
    graph: &Graph,
    ids: &[ValueId],
    text: &str,
    what: &str,
    default: Option<usize>,
) -> Result<(usize, PathBuf)> {
    match text.split_once('=') {
        Some((name, file)) => match ids.iter().position(|&id| graph.value(id).name == name) {
            Some(index) => Ok((index, file.into())),
            None => bail!(
                "the model has no {what} '{name}'; it has {}",
                names(graph, ids.iter().copied())
            ),
        },
        None => match default {
            Some(index) => Ok((index, text.into())),
            None => bail!(
                "'{text}' names no {what}; the model has {}",
                names(graph, ids.iter().copied())
            ),
        },
    }
}

fn inputs(options: &Options, graph: &Graph) -> Result<Vec<Tensor>> {
    let ids: Vec<ValueId> = graph.required_inputs().collect();
    let mut given: Vec<Option<Tensor>> = vec![None; ids.len()];
    for text in &options.inputs {
        let (index, file) = named(graph, &ids, text, "input", (ids.len() == 1).then_some(0))?;
        let name = &graph.value(ids[index]).name;
        if given[index].is_some() {
            bail!("input '{name}' is given twice");
        }
        let tensor = arrays::read(&file)?;
        check_type(graph, ids[index], &tensor)?;
        given[index] = Some(tensor);
    }
    let missing: Vec<ValueId> =
        ids.iter().zip(&given).filter(|(_, tensor)| tensor.is_none()).map(|(&id, _)| id).collect();
    let Some(seed) = options.random else {
        if !missing.is_empty() {
            bail!(
                "no value for input {}; give --input NAME=FILE.npy, or --random SEED to make values up",
                names(graph, missing.into_iter())
            );
        }
        return Ok(given.into_iter().flatten().collect());
    };
    let shapes = options.dimensions.shapes(graph, options.batch)?;
    let complete = ids.iter().zip(given).zip(&shapes).map(|((&id, tensor), shape)| match tensor {
        Some(tensor) => Ok(tensor),
        None => model_file::random_input(graph, id, shape, seed),
    });
    complete.collect()
}

fn check_type(graph: &Graph, id: ValueId, tensor: &Tensor) -> Result<()> {
    let info = graph.value(id);
    match &info.declared {
        Some(declared) if declared.data_type != tensor.data_type() => bail!(
            "input '{}' is {}, must be {} (declared {declared})",
            info.name,
            tensor.data_type(),
            declared.data_type
        ),
        _ => Ok(()),
    }
}

fn outputs(options: &Options, graph: &Graph) -> Result<Vec<(usize, PathBuf)>> {
    options
        .outputs
        .iter()
        .map(|text| named(graph, graph.outputs(), text, "output", Some(0)))
        .collect()
}
