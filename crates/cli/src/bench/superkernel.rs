//! `weft bench superkernel`: tenants' products in f32 on a GPU, in turns, side by side, and all in one launch.

use anyhow::{Result, bail, ensure};
use clap::Args;
use serde_json::{Value as Json, json};
use weft_cuda::superkernel::{PreparedProducts, ProductGpu, ProductShape, TenantProducts, Way};
use weft_device::DeviceError;

use super::statistics::{geometric_mean, median, quantile};
use crate::device::DeviceName;
use crate::progress;
use crate::table::Table;
use crate::terminal;

#[derive(Args)]
pub(crate) struct Options {
    /// Numbers of tenants, each with a product of its own
    #[arg(long, value_delimiter = ',', default_value = "2,8,16,32,64,120")]
    tenants: Vec<usize>,
    /// Products: conv, square, matrix-vector, or sizes as MxNxK
    #[arg(long, value_delimiter = ',', default_value = "conv,square,matrix-vector")]
    shapes: Vec<String>,
    /// Rounds in which all ways have their turns
    #[arg(long, default_value_t = 21)]
    rounds: usize,
    /// Contexts at most for tenants that run one after another, who then share them; 0: all in one [default: one each]
    #[arg(long)]
    contexts: Option<usize>,
    /// The GPU: cuda, or cuda:NUMBER where there are several
    #[arg(long, value_name = "DEVICE", default_value = "cuda")]
    device: DeviceName,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Products by name, with what a super-kernel gained in the paper on space-time scheduling, on a V100, over time-only and
/// over space-only, where it says so.
const NAMED: [(&str, ProductShape, Option<[f64; 2]>); 3] = [
    ("conv", ProductShape { m: 256, n: 128, k: 1152 }, Some([7.73, 3.23])),
    ("square", ProductShape { m: 256, n: 256, k: 256 }, None),
    ("matrix-vector", ProductShape { m: 512, n: 1, k: 512 }, None),
];

/// Runs of a turn that are not counted, and that are.
const WARM_UPS: usize = 2;
const RUNS: usize = 5;
/// The same where every product is waited for.
const WARM_UPS_IN_TURNS: usize = 1;
const RUNS_IN_TURNS: usize = 1;
/// Launches that the GPU times.
const GPU_RUNS: usize = 50;

pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.rounds > 0, "--rounds must be at least 1");
    let most = options.tenants.iter().copied().max().unwrap_or(0);
    ensure!(options.tenants.iter().all(|&tenants| tenants > 0), "--tenants must be at least 1");
    ensure!(most > 0, "--tenants names no number");
    let shapes = options.shapes.iter().map(|name| shape(name)).collect::<Result<Vec<_>>>()?;
    let DeviceName::Cuda(number) = options.device else { bail!("products share a GPU, not a CPU") };
    let mut gpu = ProductGpu::open(number).map_err(DeviceError::from)?;
    progress::show("opening contexts");
    let contexts = gpu.open_contexts(options.contexts.unwrap_or(most).min(most))?;
    let mut findings = Vec::new();
    for (name, &shape) in options.shapes.iter().zip(&shapes) {
        progress::show(format!("{name}: tenants"));
        let products = TenantProducts::new(&gpu, shape, most)?;
        let mut cases = Vec::new();
        for &tenants in &options.tenants {
            cases.push(Case::measure(&products, name, &shape, tenants, options.rounds)?);
        }
        findings.push(Finding { name: name.clone(), shape, cases });
    }
    progress::clear();
    match options.json {
        true => {
            let shapes: Vec<Json> = findings.iter().map(Finding::json).collect();
            let report = json!({
                "gpu": gpu.context().name(), "contexts": contexts, "rounds": options.rounds,
                "shapes": shapes,
            });
            Ok(terminal::print(&serde_json::to_string_pretty(&report)?)?)
        }
        false => {
            let heading = format!(
                "{}, f32 without tensor cores; medians in ms as the host sees them, {} rounds; time-only in {}",
                gpu.context().name(),
                options.rounds,
                in_words(contexts)
            );
            let texts = findings.iter().map(Finding::text);
            let texts: Vec<String> = [heading].into_iter().chain(texts).collect();
            Ok(terminal::print(&texts.join("\n\n"))?)
        }
    }
}

fn in_words(contexts: usize) -> String {
    match contexts {
        0 | 1 => "one context".to_string(),
        _ => format!("{contexts} contexts"),
    }
}

/// A product by its name, or by its sizes.
fn shape(name: &str) -> Result<ProductShape> {
    if let Some((_, shape, _)) = NAMED.iter().find(|(known, ..)| *known == name) {
        return Ok(*shape);
    }
    let sizes: Option<Vec<usize>> = name.split('x').map(|size| size.parse().ok()).collect();
    match sizes.as_deref() {
        Some(&[m, n, k]) if m > 0 && n > 0 && k > 0 => Ok(ProductShape { m, n, k }),
        _ => {
            bail!("--shapes: '{name}' is no product: conv, square, matrix-vector or MxNxK")
        }
    }
}

/// What was measured of one shape.
struct Finding {
    name: String,
    shape: ProductShape,
    cases: Vec<Case>,
}

/// What was measured of one number of tenants.
struct Case {
    tenants: usize,
    /// Times of each way, in milliseconds.
    times_ms: [Vec<f64>; 4],
    /// Of the launch for all, as the GPU sees it.
    gpu_ms: f64,
    kernels: [String; 4],
    flops: f64,
    bytes: f64,
}

impl Case {
    fn measure(
        products: &TenantProducts<'_>,
        name: &str,
        shape: &ProductShape,
        tenants: usize,
        rounds: usize,
    ) -> Result<Self> {
        progress::show(format!("{name}, {tenants} tenants: choosing kernels"));
        let prepared = products.prepare(tenants)?;
        progress::show(format!("{name}, {tenants} tenants: checking results"));
        Way::ALL.iter().try_for_each(|&way| check(&prepared, name, tenants, way))?;
        let mut times_ms: [Vec<f64>; 4] = Default::default();
        for round in 0..rounds {
            progress::show(format!("{name}, {tenants} tenants: round {}", round + 1));
            for (times_ms, way) in times_ms.iter_mut().zip(Way::ALL) {
                let (warm_ups, runs) = match way {
                    Way::TimeOnly => (WARM_UPS_IN_TURNS, RUNS_IN_TURNS),
                    _ => (WARM_UPS, RUNS),
                };
                let times = prepared.times_us(way, warm_ups, runs)?;
                times_ms.extend(times.into_iter().map(|time| time * 1e-3));
            }
        }
        let case = Self {
            tenants,
            times_ms,
            gpu_ms: median(&prepared.super_kernel_gpu_times_us(GPU_RUNS)?) * 1e-3,
            kernels: Way::ALL.map(|way| prepared.kernel(way).to_string()),
            flops: shape.flops() * tenants as f64,
            bytes: shape.bytes() * tenants as f64,
        };
        progress::note(case.in_a_line(name));
        Ok(case)
    }

    fn medians_ms(&self) -> [f64; 4] {
        [0, 1, 2, 3].map(|way| median(&self.times_ms[way]))
    }

    /// How many times as fast the super-kernel is as the other ways.
    fn gains(&self) -> [f64; 3] {
        let [in_turns, streams, graph, together] = self.medians_ms();
        [in_turns, streams, graph].map(|other| other / together)
    }

    /// TFLOP/s of the super-kernel.
    fn tflops(&self) -> f64 {
        self.flops / (self.medians_ms()[3] * 1e-3) * 1e-12
    }

    fn in_a_line(&self, name: &str) -> String {
        let [in_turns, streams, graph, together] = self.medians_ms();
        format!(
            "{name}, {} tenants: time-only {in_turns:.3}, space-only {streams:.3}, in one graph {graph:.3}, \
             space-time {together:.4} ms ({:.1} TFLOP/s)",
            self.tenants,
            self.tflops()
        )
    }

    fn json(&self) -> Json {
        let [in_turns, streams, graph, together] = self.medians_ms();
        let [by_turns, by_streams, by_graph] = self.gains();
        let spreads: Vec<[f64; 2]> = self
            .times_ms
            .iter()
            .map(|times| [0.1, 0.9].map(|share| quantile(times, share)))
            .collect();
        json!({
            "tenants": self.tenants,
            "time_only_ms": in_turns, "space_only_ms": streams, "space_only_graph_ms": graph,
            "space_time_ms": together, "space_time_gpu_ms": self.gpu_ms,
            "ms_p10_p90": spreads,
            "gain_over_time_only": by_turns, "gain_over_space_only": by_streams,
            "gain_over_space_only_graph": by_graph,
            "space_time_tflops": self.tflops(),
            "space_time_gpu_tflops": self.flops / self.gpu_ms * 1e-9,
            "space_time_gpu_gigabytes_per_second": self.bytes / self.gpu_ms * 1e-6,
            "kernels": self.kernels,
        })
    }
}

/// Ends the command where results are wrong.
fn check(prepared: &PreparedProducts<'_>, name: &str, tenants: usize, way: Way) -> Result<()> {
    let deviation = prepared.check(way)?;
    ensure!(
        !deviation.is_wrong(),
        "{name}, {tenants} tenants, {way}: output {} of tenant {} is wrong, {:.1} times as far off as rounding \
         explains, by the kernel '{}'",
        deviation.place,
        deviation.tenant,
        deviation.share,
        prepared.kernel(way)
    );
    Ok(())
}

impl Finding {
    /// Geometric means over numbers of tenants of what the super-kernel gains.
    fn mean_gains(&self) -> [f64; 3] {
        [0, 1, 2].map(|other| {
            let gains: Vec<f64> = self.cases.iter().map(|case| case.gains()[other]).collect();
            geometric_mean(&gains)
        })
    }

    fn text(&self) -> String {
        let ProductShape { m, n, k } = self.shape;
        let mut table = Table::new([
            "tenants",
            "time-only",
            "space-only",
            "in one graph",
            "space-time",
            "on the GPU",
            "x time-only",
            "x space-only",
            "x graph",
            "TFLOP/s",
            "kernel of all",
            "kernel of each in the graph",
        ]);
        for case in &self.cases {
            let [in_turns, streams, graph, together] = case.medians_ms();
            let milliseconds = [in_turns, streams, graph, together, case.gpu_ms];
            let cells = milliseconds.map(|time| format!("{time:.4}")).into_iter();
            let cells = cells.chain(case.gains().map(|gain| format!("{gain:.2}")));
            let kernels = [case.kernels[3].clone(), case.kernels[2].clone()];
            let cells = cells.chain([format!("{:.2}", case.tflops())]).chain(kernels);
            table.row([case.tenants.to_string()].into_iter().chain(cells));
        }
        let [by_turns, by_streams, by_graph] = self.mean_gains();
        let known = NAMED.iter().find(|(_, shape, _)| *shape == self.shape);
        let paper =
            known.and_then(|(.., paper)| *paper).map_or_else(String::new, |[turns, space]| {
                format!(" (the paper, on a V100: {turns} and {space})")
            });
        format!(
            "{}: M {m}, N {n}, K {k}\n{}\nspace-time, geometric means: {by_turns:.2} times time-only, \
             {by_streams:.2} times space-only{paper}, {by_graph:.2} times space-only in one graph",
            self.name,
            table.render()
        )
    }

    fn json(&self) -> Json {
        let ProductShape { m, n, k } = self.shape;
        let [by_turns, by_streams, by_graph] = self.mean_gains();
        let cases: Vec<Json> = self.cases.iter().map(Case::json).collect();
        json!({
            "shape": self.name, "m": m, "n": n, "k": k, "cases": cases,
            "mean_gain_over_time_only": by_turns, "mean_gain_over_space_only": by_streams,
            "mean_gain_over_space_only_graph": by_graph,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(tenants: usize, times_ms: [f64; 4]) -> Case {
        Case {
            tenants,
            times_ms: times_ms.map(|time| vec![time]),
            gpu_ms: 0.5 * times_ms[3],
            kernels: Default::default(),
            flops: 1e9,
            bytes: 1e6,
        }
    }

    #[test]
    fn products_have_names_or_sizes() {
        assert_eq!(shape("conv").unwrap(), ProductShape { m: 256, n: 128, k: 1152 });
        assert_eq!(shape("3x1x5").unwrap(), ProductShape { m: 3, n: 1, k: 5 });
        for name in ["", "3x4", "0x4x5", "3x4x5x6", "convolution", "3x4x-5"] {
            assert!(shape(name).is_err(), "{name}");
        }
    }

    #[test]
    fn gains_are_over_each_way_and_their_mean_is_geometric() {
        let cases = vec![case(2, [8.0, 4.0, 2.0, 1.0]), case(8, [4.0, 1.0, 4.0, 2.0])];
        assert_eq!(cases[0].gains(), [8.0, 4.0, 2.0]);
        assert!((cases[0].tflops() - 1.0).abs() < 1e-9);
        let (_, shape, _) = NAMED[0];
        let finding = Finding { name: "conv".to_string(), shape, cases };
        for (mean, expected) in finding.mean_gains().into_iter().zip([4.0, 2f64.sqrt(), 2.0]) {
            assert!((mean - expected).abs() < 1e-9, "{mean}");
        }
        let text = finding.text();
        assert!(text.contains("(the paper, on a V100: 7.73 and 3.23)"), "{text}");
        assert_eq!(finding.json()["cases"][1]["gain_over_time_only"], 2.0);
        assert_eq!(finding.json()["cases"][0]["space_time_gpu_tflops"], 2.0);
    }
}
