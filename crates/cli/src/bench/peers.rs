//! `weft bench peers`: Weft and onnxruntime on the same models, inputs and cores, in turns.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value as Json, json};
use weft_cpu::CpuDevice;
use weft_ir::{Tensor, Value};

use super::peer::{Peer, python};
use super::statistics::{geometric_mean, median, quantile};
use super::timing::{Subject, first_units};
use crate::arrays;
use crate::model_file::{self, DimensionOptions};
use crate::progress;
use crate::table::Table;
use crate::terminal;

#[derive(Args)]
pub(crate) struct Options {
    /// The models: ONNX files, or zoo:NAME
    #[arg(default_values = ["zoo:resnet50", "zoo:vgg16", "zoo:mobilenet_v2", "zoo:mobilenet_v3_large", "zoo:minilm_l6"])]
    models: Vec<String>,
    /// Batch sizes
    #[arg(long, value_delimiter = ',', default_value = "1,8")]
    batch: Vec<usize>,
    /// Numbers of cores
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    cores: Vec<usize>,
    /// Seconds to measure each case, both engines together
    #[arg(long, default_value_t = 6.0)]
    seconds: f64,
    /// Only check that outputs agree and compare load time and memory
    #[arg(long)]
    no_timing: bool,
    #[command(flatten)]
    dimensions: DimensionOptions,
    /// Also write the results as JSON to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// How far outputs may differ, relative to the largest element.
const TOLERANCE: f64 = 1e-4;

/// Turns that each engine gets at least.
const LEAST_TURNS: usize = 5;

/// Runs shorter than this are preceded by one that is not counted, so that each engine finds its own data in the caches.
const WARM_UP_BELOW_MS: f64 = 100.0;

/// The Python side of onnxruntime.
const SCRIPT: &str = include_str!("peer_onnxruntime.py");

/// Starts onnxruntime; also what it says of itself.
fn start_peer() -> Result<(Peer, Json)> {
    Peer::start(&python(), SCRIPT, "onnxruntime and numpy")
        .context("set WEFT_PYTHON to an interpreter that has onnxruntime and numpy")
}

struct Case {
    model: String,
    batch: usize,
    cores: usize,
    weft_ms: Vec<f64>,
    peer_ms: Vec<f64>,
    difference: f64,
}

impl Case {
    /// How much faster Weft is: above 1 is faster. The median of ratios of neighbouring turns.
    fn speed(&self) -> f64 {
        let ratios: Vec<f64> =
            self.peer_ms.iter().zip(&self.weft_ms).map(|(peer, weft)| peer / weft).collect();
        median(&ratios)
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let device = CpuDevice::new()?;
    let folder = std::env::temp_dir().join(format!("weft-peers-{}", std::process::id()));
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let outcome = measure(options, &device, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    let (cases, footprints, version) = outcome?;
    progress::clear();
    report(options, &cases, &footprints, &version)
}

type Measured = (Vec<Case>, Vec<Json>, String);

fn measure(options: &Options, device: &CpuDevice, folder: &Path) -> Result<Measured> {
    let mut cases = Vec::new();
    let mut footprints = Vec::new();
    let version = start_peer()?.1["version"].as_str().unwrap_or("?").to_string();
    for model in &options.models {
        let path = model_file::resolve(model)?;
        for &batch in &options.batch {
            for &cores in &options.cores {
                progress::show(format!("{model}, batch {batch}, {cores} cores"));
                cases.push(compare(options, device, &path, batch, cores, folder)?);
            }
        }
        progress::show(format!("{model}, load time and memory"));
        footprints.push(footprint(options, device, &path, folder)?);
    }
    Ok((cases, footprints, version))
}

/// Writes the inputs for the peer, and loads the model there.
fn load_peer(
    peer: &mut Peer,
    path: &Path,
    subject: &Subject,
    device: &CpuDevice,
    cores: usize,
    folder: &Path,
) -> Result<Json> {
    let mut files = serde_json::Map::new();
    for (index, (id, value)) in subject.graph.required_inputs().zip(&subject.inputs).enumerate() {
        let file = folder.join(format!("input-{index}.npy"));
        arrays::write(&file, value.tensor().context("inputs are tensors")?)?;
        files.insert(subject.graph.value(id).name.clone(), json!(file));
    }
    let units = first_units(device, cores)?;
    let command = json!({ "do": "load", "model": path, "threads": cores, "cores": units.as_slice(), "inputs": files });
    peer.ask(&command)
}

fn compare(
    options: &Options,
    device: &CpuDevice,
    path: &Path,
    batch: usize,
    cores: usize,
    folder: &Path,
) -> Result<Case> {
    let units = first_units(device, cores)?;
    let subject = Subject::new(path, batch, &options.dimensions, device, &units)?;
    let (mut peer, _) = start_peer()?;
    load_peer(&mut peer, path, &subject, device, cores, folder)?;
    let difference = difference(&mut peer, &subject, folder)?;
    ensure!(
        difference <= TOLERANCE,
        "{}, batch {batch}: outputs differ from onnxruntime's by {difference:.1e}, more than {TOLERANCE:.0e}",
        path.display()
    );
    let (mut weft_ms, mut peer_ms) = (Vec::new(), Vec::new());
    let start = Instant::now();
    let budget = Duration::from_secs_f64(options.seconds.max(0.0));
    while !options.no_timing && (weft_ms.len() < LEAST_TURNS || start.elapsed() < budget) {
        peer.pause()?;
        weft_ms.push(warmed(|| subject.time_once_ms())?);
        peer.resume()?;
        peer_ms.push(warmed(|| peer.number(&json!({ "do": "run" }), "ms"))?);
    }
    Ok(Case { model: model_file::name(path), batch, cores, weft_ms, peer_ms, difference })
}

/// The time of a run, or of a second one where the first was short.
fn warmed(mut run: impl FnMut() -> Result<f64>) -> Result<f64> {
    let first = run()?;
    if first < WARM_UP_BELOW_MS { run() } else { Ok(first) }
}

/// The largest difference of any output element, relative to the largest element of that output.
fn difference(peer: &mut Peer, subject: &Subject, folder: &Path) -> Result<f64> {
    let results = subject.executable.run(&subject.inputs)?;
    let files: Vec<PathBuf> =
        (0..results.len()).map(|index| folder.join(format!("output-{index}.npy"))).collect();
    peer.ask(&json!({ "do": "outputs", "files": files }))?;
    let mut worst = 0f64;
    for (file, result) in files.iter().zip(&results) {
        let Value::Tensor(ours) = result else { continue };
        worst = worst.max(relative_difference(ours, &arrays::read(file)?)?);
    }
    Ok(worst)
}

fn relative_difference(ours: &Tensor, theirs: &Tensor) -> Result<f64> {
    ensure!(
        ours.shape() == theirs.shape(),
        "shape {:?}, onnxruntime gives {:?}",
        ours.shape(),
        theirs.shape()
    );
    let (ours, theirs) = (ours.to_f64s()?, theirs.to_f64s()?);
    let scale = theirs.iter().fold(0f64, |scale, element| scale.max(element.abs()));
    let differences = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs());
    // Not `max` alone, which passes over what is not a number.
    ensure!(differences.clone().all(f64::is_finite), "an output is not finite");
    let worst = differences.fold(0f64, f64::max);
    Ok(if scale > 0.0 { worst / scale } else { worst })
}

/// Load time and peak memory of each engine, each in a process of its own.
fn footprint(options: &Options, device: &CpuDevice, path: &Path, folder: &Path) -> Result<Json> {
    let program = std::env::current_exe().context("where is this program?")?;
    let mut command = Command::new(program);
    command.args(["bench", "footprint"]).arg(path);
    for (name, size) in &options.dimensions.dimensions {
        command.arg("--dim").arg(format!("{name}={size}"));
    }
    let output = command.output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ours: Json = serde_json::from_slice(&output.stdout)?;

    let subject = Subject::new(path, 1, &options.dimensions, device, &first_units(device, 1)?)?;
    let (mut peer, _) = start_peer()?;
    let mut theirs = load_peer(&mut peer, path, &subject, device, 1, folder)?;
    theirs["peak_mib"] = json!(peer.number(&json!({ "do": "run" }), "peak_mib")?);
    Ok(json!({ "model": model_file::name(path), "weft": ours, "onnxruntime": theirs }))
}

fn report(options: &Options, cases: &[Case], footprints: &[Json], version: &str) -> Result<()> {
    let mut table = Table::new([
        "model",
        "batch",
        "cores",
        "weft ms",
        "p10-p90",
        "onnxruntime ms",
        "p10-p90 ",
        "speed",
        "difference",
    ]);
    let spread =
        |samples: &[f64]| format!("{:.2}-{:.2}", quantile(samples, 0.1), quantile(samples, 0.9));
    for case in cases {
        table.row([
            case.model.clone(),
            case.batch.to_string(),
            case.cores.to_string(),
            format!("{:.2}", median(&case.weft_ms)),
            spread(&case.weft_ms),
            format!("{:.2}", median(&case.peer_ms)),
            spread(&case.peer_ms),
            format!("{:.2}", case.speed()),
            format!("{:.0e}", case.difference),
        ]);
    }
    let speeds: Vec<f64> = cases.iter().map(Case::speed).collect();
    let least = speeds.iter().copied().fold(f64::INFINITY, f64::min);
    terminal::print(&format!(
        "onnxruntime {version}; speed above 1: Weft is faster; difference relative to the largest output\n"
    ))?;
    terminal::print(&table.render())?;
    if !options.no_timing {
        terminal::print(&format!(
            "\ngeometric mean of speed {:.2}, least {least:.2}",
            geometric_mean(&speeds)
        ))?;
    }
    let mut memory = Table::new([
        "model",
        "weft load ms",
        "onnxruntime load ms",
        "weft peak MiB",
        "onnxruntime peak MiB",
        "less import",
    ]);
    let number =
        |entry: &Json, engine: &str, key: &str| entry[engine][key].as_f64().unwrap_or(f64::NAN);
    for entry in footprints {
        let peak = number(entry, "onnxruntime", "peak_mib");
        memory.row([
            entry["model"].as_str().unwrap_or_default().to_string(),
            format!("{:.0}", number(entry, "weft", "load_ms")),
            format!("{:.0}", number(entry, "onnxruntime", "load_ms")),
            format!("{:.0}", number(entry, "weft", "peak_mib")),
            format!("{peak:.0}"),
            format!("{:.0}", peak - number(entry, "onnxruntime", "before_mib")),
        ]);
    }
    terminal::print(&format!("\n{}", memory.render()))?;
    if let Some(path) = &options.json {
        let cases: Vec<Json> = cases
            .iter()
            .map(|case| {
                json!({
                    "model": case.model, "batch": case.batch, "cores": case.cores, "speed": case.speed(),
                    "weft_ms": case.weft_ms, "onnxruntime_ms": case.peer_ms, "difference": case.difference,
                })
            })
            .collect();
        let report = json!({ "onnxruntime": version, "cases": cases, "footprints": footprints });
        std::fs::write(path, serde_json::to_string_pretty(&report)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_relative_to_the_largest_element() {
        let tensor = |elements: &[f32]| Tensor::vector(elements.to_vec());
        let small = relative_difference(&tensor(&[1e-9, 2e-9]), &tensor(&[1e-9, 1e-9])).unwrap();
        assert!((small - 1.0).abs() < 1e-6, "values around 1e-9 must not pass for equal: {small}");
        assert_eq!(relative_difference(&tensor(&[3.0]), &tensor(&[3.0])).unwrap(), 0.0);
        assert!(relative_difference(&tensor(&[f32::NAN]), &tensor(&[3.0])).is_err());
        assert!(relative_difference(&tensor(&[1.0, 2.0]), &tensor(&[1.0])).is_err());
    }

    #[test]
    fn speed_is_the_median_of_paired_ratios() {
        let case = Case {
            model: "m".into(),
            batch: 1,
            cores: 1,
            weft_ms: vec![1.0, 2.0, 4.0],
            peer_ms: vec![2.0, 6.0, 4.0],
            difference: 0.0,
        };
        assert_eq!(case.speed(), 2.0);
    }
}
