//! A model named on the command line, and the sizes of its open dimensions.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use weft_ir::{DataType, Dimension, Dimensions, Graph, Tensor, Value, ValueId};

/// The size that open dimensions other than the batch are given where nothing else is said.
const DEFAULT_OPEN_DIMENSION: usize = 128;

/// Sizes of a model's open dimensions.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct DimensionOptions {
    /// Size of a named dimension, as NAME=SIZE; may be given more than once [default: 128 each]
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = parse_dimension)]
    pub(crate) dimensions: Vec<(String, usize)>,
}

fn parse_dimension(text: &str) -> Result<(String, usize), String> {
    let refuse = || format!("'{text}' is not NAME=SIZE");
    let (name, size) = text.split_once('=').ok_or_else(refuse)?;
    Ok((name.to_string(), size.parse().map_err(|_| refuse())?))
}

impl DimensionOptions {
    /// The shapes of the model's inputs at a batch size; a named dimension that the model has not is an error.
    pub(crate) fn shapes(&self, graph: &Graph, batch: usize) -> Result<Vec<Vec<usize>>> {
        if let Some((unknown, known)) = self.unknown(symbols(graph)) {
            bail!("the model has no dimension '{unknown}'; it has {known}");
        }
        self.shapes_among(graph, batch)
    }

    /// The same where the model is one of several, and a named dimension may be another's.
    pub(crate) fn shapes_among(&self, graph: &Graph, batch: usize) -> Result<Vec<Vec<usize>>> {
        Ok(graph.input_shapes(&self.sizes(batch))?)
    }

    /// Reads models, which may be named more than once, so that what is wrong with any of them is said before time goes into
    /// another. A named dimension that none of them has is an error.
    pub(crate) fn check<'a>(&self, models: impl IntoIterator<Item = &'a str>) -> Result<()> {
        let names: BTreeSet<&str> = models.into_iter().collect();
        let mut known = BTreeSet::new();
        for name in names {
            match name.strip_prefix("zoo:") {
                // Nothing is wrong with these, and some take long to be made.
                Some(name) if self.dimensions.is_empty() => {
                    weft_zoo::entry(name)?;
                }
                _ => known.extend(symbols(&load(&resolve(name)?)?)),
            }
        }
        match self.unknown(known) {
            Some((unknown, known)) => {
                bail!("no model has a dimension '{unknown}'; they have {known}")
            }
            None => Ok(()),
        }
    }

    /// The first named dimension that is not among those that are known, and these for people.
    fn unknown(&self, known: BTreeSet<String>) -> Option<(&str, String)> {
        let names: BTreeSet<&str> = self.dimensions.iter().map(|(name, _)| &**name).collect();
        let unknown = names.into_iter().find(|name| !known.contains(*name))?;
        let known: Vec<String> = known.into_iter().collect();
        Some((unknown, if known.is_empty() { "none".into() } else { known.join(", ") }))
    }

    /// The sizes at a batch size, whatever the model.
    pub(crate) fn sizes(&self, batch: usize) -> Dimensions {
        let named = self.dimensions.iter().cloned().collect();
        Dimensions { batch, named, otherwise: Some(DEFAULT_OPEN_DIMENSION) }
    }
}

fn symbols(graph: &Graph) -> BTreeSet<String> {
    graph
        .required_inputs()
        .filter_map(|id| graph.value(id).declared.as_ref()?.dimensions.as_ref())
        .flatten()
        .filter_map(|dimension| match dimension {
            Dimension::Symbol(name) => Some(name.clone()),
            _ => None,
        })
        .collect()
}

/// Reads a model file.
pub(crate) fn load(path: &Path) -> Result<Graph> {
    Ok(weft_onnx::load(path)?)
}

/// The model's name: its file's, without the ending.
pub(crate) fn name(path: &Path) -> String {
    path.file_stem().map_or_else(|| "model".into(), |stem| stem.to_string_lossy().into_owned())
}

/// The name of a model as it is given on the command line; one that the zoo has not is an error.
pub(crate) fn name_of(given: &str) -> Result<String> {
    Ok(match given.strip_prefix("zoo:") {
        Some(zoo_name) => weft_zoo::entry(zoo_name)?.name.to_string(),
        None => name(Path::new(given)),
    })
}

/// A tensor of random numbers for one input: floats between -1 and 1, small integers, coins for bool.
pub(crate) fn random_input(
    graph: &Graph,
    id: ValueId,
    shape: &[usize],
    seed: u64,
) -> Result<Tensor> {
    let info = graph.value(id);
    let data_type = info.declared.as_ref().map_or(DataType::F32, |declared| declared.data_type);
    let count = weft_ir::checked_count(shape, data_type)?;
    let mut state =
        seed.wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(id.index() as u64 + 1) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 32
    };
    let shape = shape.to_vec();
    let tensor = match data_type {
        DataType::F32 | DataType::F64 | DataType::F16 | DataType::BF16 => {
            let floats = (0..count).map(|_| next() as f32 / (1u64 << 31) as f32 - 1.0).collect();
            Tensor::from_f32s(shape, data_type, floats)?
        }
        // Token numbers, masks and the like: small enough for any vocabulary.
        DataType::I64 => {
            Tensor::from_vec(shape, (0..count).map(|_| (next() % 2) as i64).collect())?
        }
        DataType::I32 => {
            Tensor::from_vec(shape, (0..count).map(|_| (next() % 2) as i32).collect())?
        }
        DataType::I8 => {
            Tensor::from_vec(shape, (0..count).map(|_| (next() % 127) as i8).collect())?
        }
        DataType::U8 => Tensor::from_vec(shape, (0..count).map(|_| next() as u8).collect())?,
        DataType::Bool => Tensor::from_vec(shape, (0..count).map(|_| next() % 2 == 0).collect())?,
        other => bail!("input '{}': no random values for type {other}", info.name),
    };
    Ok(tensor)
}

/// Random values for all inputs of the given shapes.
pub(crate) fn random_inputs(
    graph: &Graph,
    shapes: &[Vec<usize>],
    seed: u64,
) -> Result<Vec<Tensor>> {
    graph
        .required_inputs()
        .zip(shapes)
        .map(|(id, shape)| random_input(graph, id, shape, seed))
        .collect()
}

/// The same as an executable takes them.
pub(crate) fn random_values(graph: &Graph, shapes: &[Vec<usize>], seed: u64) -> Result<Vec<Value>> {
    Ok(random_inputs(graph, shapes, seed)?.into_iter().map(Value::Tensor).collect())
}

/// Models named on the command line: files, or zoo names with `zoo:` in front, which are written to a cache folder.
pub(crate) fn resolve(name: &str) -> Result<PathBuf> {
    let Some(zoo_name) = name.strip_prefix("zoo:") else { return Ok(PathBuf::from(name)) };
    let folder = std::env::temp_dir().join(format!("weft-zoo-{}", env!("CARGO_PKG_VERSION")));
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let path = folder.join(format!("{zoo_name}.onnx"));
    if !path.exists() {
        let graph = weft_zoo::build(zoo_name, &Default::default())?;
        // Written under another name first, so that a run beside this one never reads half a file.
        let partial = folder.join(format!("{zoo_name}.{}.partial", std::process::id()));
        weft_onnx::save(&graph, &partial)?;
        std::fs::rename(&partial, &path)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(path)
}
