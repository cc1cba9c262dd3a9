//! Rows brought to mean 0 and variance 1, or divided by their root mean square, then scaled and shifted.

use std::fmt;

use bytemuck::{Pod, Zeroable, bytes_of};

use super::divider::Divider;
use super::rows::Rows;
use crate::launch::{Argument, Candidate, KernelSource, Launch};
use crate::{Chip, Storage};

const TEXT: &str = concat!(
    include_str!("../../kernels/divider.cuh"),
    include_str!("../../kernels/reduction.cuh"),
    include_str!("../../kernels/normalise.cu")
);

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Shape {
    rows: u32,
    columns: u32,
    epsilon: f32,
    groups: u32,
    channels: u32,
    per_channel: Divider,
}

/// What scale and bias belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parameters {
    /// A column of every row.
    PerColumn,
    /// A channel: row `r` is group `r % groups` of an image, and has `channels` of them, one after the other.
    PerChannel { groups: usize, channels: usize },
}

/// Rows to be normalised.
#[derive(Clone, Debug)]
pub(crate) struct Normalisation {
    pub(crate) storage: Storage,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) epsilon: f32,
    /// Rows are divided by their root mean square; their mean stays.
    pub(crate) is_rms: bool,
    pub(crate) parameters: Parameters,
    /// How scale and bias are stored.
    pub(crate) parameter_storage: Storage,
    pub(crate) scale: Argument,
    pub(crate) bias: Option<Argument>,
}

/// All that a candidate's time depends on, apart from the precision and the partition.
impl fmt::Display for Normalisation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_rms { "rms norm" } else { "layer norm" };
        write!(f, "{kind} {}x{}", self.rows, self.columns)?;
        if let Parameters::PerChannel { groups, channels } = self.parameters {
            write!(f, ", {groups} groups of {channels} channels")?;
        }
        write!(f, ", scale of {:?}", self.parameter_storage)?;
        match self.bias {
            Some(_) => write!(f, ", bias"),
            None => Ok(()),
        }
    }
}

impl Normalisation {
    /// The ways to compute it, the one expected to be fastest first. There is at least one element.
    pub(crate) fn candidates(
        &self,
        name: &str,
        chip: Chip,
        from: Argument,
        to: Argument,
    ) -> Vec<Candidate> {
        let rows = Rows { storage: self.storage, rows: self.rows, columns: self.columns };
        let bias = self.bias.clone().unwrap_or(Argument::Null);
        let shape = Argument::Bytes(bytes_of(&self.shape()).to_vec());
        let arguments = vec![from, self.scale.clone(), bias, to, shape];
        let candidate = |kind: &str, source, blocks, threads| {
            let launch = Launch {
                source,
                grid: [blocks, 1, 1],
                threads,
                shared_bytes: 0,
                cluster: [1, 1, 1],
                arguments: arguments.clone(),
            };
            Candidate::new(format!("{name} {kind}"), vec![launch], 0)
        };
        let mut candidates = Vec::new();
        if let Some(warp) = rows.warp_per_row(chip) {
            let more = ("VECTORS", warp.vectors.to_string());
            let source = self.source("normalise_warp", warp.width, more);
            candidates.push(candidate("warp", source, warp.blocks, warp.threads));
        }
        let block = rows.block_per_row();
        // A block of which most threads have nothing to read gains nothing.
        if candidates.is_empty() || self.columns >= block.width * 64 {
            let more = ("THREADS", block.threads.to_string());
            let source = self.source("normalise_block", block.width, more);
            candidates.push(candidate("block", source, self.rows as u32, block.threads));
        }
        candidates
    }

    fn shape(&self) -> Shape {
        let (groups, channels) = match self.parameters {
            Parameters::PerColumn => (1, 1),
            Parameters::PerChannel { groups, channels } => (groups, channels),
        };
        Shape {
            rows: self.rows as u32,
            columns: self.columns as u32,
            epsilon: self.epsilon,
            groups: groups as u32,
            channels: channels as u32,
            per_channel: Divider::new(self.columns / channels),
        }
    }

    fn source(
        &self,
        entry: &'static str,
        width: usize,
        more: (&'static str, String),
    ) -> KernelSource {
        let flag = |is_set: bool| u8::from(is_set).to_string();
        let defines = vec![
            ("STORAGE", self.storage.cuda_name().to_string()),
            ("PARAMETER", self.parameter_storage.cuda_name().to_string()),
            ("ARE_WEIGHTS", flag(matches!(self.scale, Argument::Weights(_)))),
            ("RMS", flag(self.is_rms)),
            ("HAS_BIAS", flag(self.bias.is_some())),
            ("PER_CHANNEL", flag(self.parameters != Parameters::PerColumn)),
            ("WIDTH", width.to_string()),
            more,
        ];
        KernelSource::new("normalise.cu", TEXT, entry, defines)
    }
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    let layer = Normalisation {
        storage: Storage::F16,
        rows: 128,
        columns: 768,
        epsilon: 1e-5,
        is_rms: false,
        parameters: Parameters::PerColumn,
        parameter_storage: Storage::F32,
        scale: Argument::Null,
        bias: Some(Argument::Null),
    };
    let rms = Normalisation { is_rms: true, bias: None, columns: 77, ..layer.clone() };
    let parameters = Parameters::PerChannel { groups: 8, channels: 4 };
    let storage = Storage::Bf16;
    let group = Normalisation { parameters, storage, columns: 4 * 3136, ..layer.clone() };
    let candidates = [layer, rms, group].into_iter().flat_map(|normalisation| {
        normalisation.candidates("norm", Chip::H200, Argument::Input(0), Argument::Output(0))
    });
    candidates.flat_map(|candidate| candidate.launches).map(|launch| launch.source).collect()
}
