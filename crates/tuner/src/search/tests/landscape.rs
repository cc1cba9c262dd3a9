//! Made-up operators whose candidates take what tiled matrix products take: rooflines with waves, occupancy, splits and
//! quirks that no formula foretells.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use weft_device::{CandidateDescription, Screening};

use crate::search::Outcome;

/// By how much two measurements of one candidate differ.
pub(crate) const NOISE: f64 = 0.02;

/// By how much a device's guess is off, beside what it leaves out.
const MISJUDGED: f64 = 0.3;

const SMS: f64 = 32.0;
const FLOPS_PER_SM_PER_US: f64 = 6.0e6;
const BYTES_PER_US: f64 = 1.2e6;
const SHARED_BYTES: f64 = 227.0 * 1024.0;

/// An operator with all its candidates, listed by a coarse estimate as a device would.
pub(crate) struct Landscape {
    pub(crate) candidates: Vec<CandidateDescription>,
    /// What each takes, without noise.
    pub(crate) truth_us: Vec<f64>,
    noise: SmallRng,
}

#[derive(Clone, Copy)]
struct Shape {
    m: f64,
    n: f64,
    k: f64,
}

#[derive(Clone, Copy)]
struct Configuration {
    family: i32,
    tile_m: i32,
    tile_n: i32,
    tile_k: i32,
    stages: i32,
    split: i32,
    warps: i32,
}

/// What follows from a configuration at a shape.
struct Derived {
    blocks_per_sm: f64,
    waves: f64,
    flops_per_block: f64,
    bytes: f64,
    accumulators_per_thread: f64,
}

impl Landscape {
    /// An operator and so many of its candidates, drawn from a seed.
    pub(crate) fn new(seed: u64, size: usize) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let m = [49.0, 196.0, 784.0, 3136.0, 128.0, 1024.0][random.random_range(0..6)];
        let n = [64.0, 128.0, 256.0, 512.0, 768.0, 2048.0][random.random_range(0..6)];
        let k = [64.0, 256.0, 576.0, 1152.0, 2304.0, 3072.0][random.random_range(0..6)];
        let shape = Shape { m, n, k };
        let mut configurations = all();
        configurations.shuffle(&mut random);
        configurations.truncate(size);
        configurations.sort_by(|a, b| a.estimate_us(shape).total_cmp(&b.estimate_us(shape)));
        let untuned = configurations[0].estimate_us(shape);
        let candidates = configurations.iter().map(|configuration| CandidateDescription {
            name: configuration.name(),
            parameters: configuration.parameters(),
            features: configuration.features(shape, untuned),
            screening: Screening::OnAPart,
            code: None,
        });
        let truth = configurations.iter().map(|configuration| configuration.true_us(shape, seed));
        Self { candidates: candidates.collect(), truth_us: truth.collect(), noise: random }
    }

    /// Thirty operators with spaces of 50 to 2000 candidates.
    pub(crate) fn thirty(seed: u64) -> Vec<Self> {
        let size = |index: u64| (50.0 * 40f64.powf(index as f64 / 29.0)).round() as usize;
        (0..30).map(|index| Self::new(seed * 1000 + index, size(index))).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.candidates.len()
    }

    pub(crate) fn best_us(&self) -> f64 {
        self.truth_us.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// By how much a candidate is slower than the best there is.
    pub(crate) fn regret(&self, candidate: usize) -> f64 {
        self.truth_us[candidate] / self.best_us() - 1.0
    }

    /// One noisy measurement.
    pub(crate) fn measure(&mut self, candidate: usize) -> Outcome {
        let factor = 1.0 + NOISE * normal(&mut self.noise);
        Outcome::Time(Duration::from_secs_f64(self.truth_us[candidate] * factor.max(0.5) * 1e-6))
    }
}

/// The sum of twelve uniform draws is as good as normal.
fn normal(random: &mut SmallRng) -> f64 {
    (0..12).map(|_| random.random_range(0.0..1.0)).sum::<f64>() - 6.0
}

fn mix(values: &[i32], salt: u64) -> u64 {
    values.iter().fold(salt, |hash, &value| {
        (hash ^ value as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23)
    })
}

/// All configurations that fit the chip.
fn all() -> Vec<Configuration> {
    let mut configurations = Vec::new();
    for family in [0, 1] {
        for tile_m in [16, 32, 64, 128, 256] {
            for tile_n in [16, 32, 64, 128, 256] {
                for tile_k in [16, 32, 64] {
                    for stages in [2, 3, 4, 6] {
                        for split in [1, 2, 4, 8] {
                            for warps in [2, 4, 8] {
                                configurations.push(Configuration {
                                    family,
                                    tile_m,
                                    tile_n,
                                    tile_k,
                                    stages,
                                    split,
                                    warps,
                                });
                            }
                        }
                    }
                }
            }
        }
    }
    configurations.retain(Configuration::is_legal);
    configurations
}

impl Configuration {
    fn parameters(&self) -> Vec<i32> {
        let tile = [self.tile_m, self.tile_n, self.tile_k];
        [&[self.family][..], &tile, &[self.stages, self.split, self.warps]].concat()
    }

    fn name(&self) -> String {
        self.parameters().iter().map(i32::to_string).collect::<Vec<_>>().join("-")
    }

    fn shared_bytes(&self) -> f64 {
        f64::from((self.tile_m + self.tile_n) * self.tile_k * self.stages * 2)
    }

    fn is_legal(&self) -> bool {
        let outputs = self.tile_m * self.tile_n / (self.warps * 32);
        let wide_enough = self.family == 0 || (self.tile_m >= 64 && self.warps >= 4);
        self.shared_bytes() <= SHARED_BYTES && (2..=192).contains(&outputs) && wide_enough
    }

    fn derived(&self, shape: Shape) -> Derived {
        let [tile_m, tile_n, split] = [self.tile_m, self.tile_n, self.split].map(f64::from);
        let accumulators_per_thread = tile_m * tile_n / f64::from(self.warps * 32);
        let registers = (accumulators_per_thread + 48.0) * f64::from(self.warps * 32);
        let blocks_per_sm =
            (SHARED_BYTES / self.shared_bytes()).min(65536.0 / registers).clamp(1.0, 8.0).floor();
        let blocks = (shape.m / tile_m).ceil() * (shape.n / tile_n).ceil() * split;
        let depth = (shape.k / split / f64::from(self.tile_k)).ceil() * f64::from(self.tile_k);
        Derived {
            blocks_per_sm,
            waves: (blocks / (SMS * blocks_per_sm)).ceil(),
            flops_per_block: 2.0 * tile_m * tile_n * depth,
            bytes: blocks * (tile_m + tile_n) * depth * 2.0 / 4.0
                + shape.m * shape.n * if self.split > 1 { 8.0 * split } else { 2.0 },
            accumulators_per_thread,
        }
    }

    /// What a device would guess: a roofline without what goes wrong.
    fn estimate_us(&self, shape: Shape) -> f64 {
        let derived = self.derived(shape);
        let concurrent = derived.waves * derived.blocks_per_sm;
        let compute = concurrent * derived.flops_per_block / FLOPS_PER_SM_PER_US;
        let roofline = compute.max(derived.bytes / BYTES_PER_US) + 2.0;
        roofline * (MISJUDGED * self.of_tile(2)).exp()
    }

    fn true_us(&self, shape: Shape, seed: u64) -> f64 {
        let derived = self.derived(shape);
        let [tile_m, tile_n, tile_k] = [self.tile_m, self.tile_n, self.tile_k].map(f64::from);
        let reuse = tile_m * tile_n / (tile_m + tile_n);
        let half = if self.family == 1 { 26.0 } else { 14.0 };
        let peak = if self.family == 1 { 1.0 } else { 0.72 };
        let hidden = derived.blocks_per_sm * f64::from(self.warps) * f64::from(self.stages - 1);
        let latency = 1.0 - (-hidden / (200.0 / tile_k + 6.0)).exp();
        let spills = if derived.accumulators_per_thread > 128.0 { 0.7 } else { 1.0 };
        let crowded = if self.stages >= 4 && self.warps == 8 { 0.93 } else { 1.0 };
        let efficiency = peak * reuse / (reuse + half) * latency * spills * crowded;
        let concurrent = derived.waves * derived.blocks_per_sm;
        let compute = concurrent * derived.flops_per_block / (FLOPS_PER_SM_PER_US * efficiency);
        let memory = derived.bytes / (BYTES_PER_US * latency.max(0.3));
        let prologue = 0.25 * f64::from(self.stages) + tile_m * tile_n / 16384.0;
        let reduction = if self.split > 1 { 1.6 + 0.1 * f64::from(self.split) } else { 0.0 };
        let roofline = (compute.powi(3) + memory.powi(3)).cbrt();
        (roofline + prologue + reduction + 2.0) * self.quirk(seed)
    }

    /// Bank conflicts and the like: much for all candidates that share a tile, in every operator or in this one, and
    /// a little for each.
    fn quirk(&self, seed: u64) -> f64 {
        let own = normal(&mut SmallRng::seed_from_u64(mix(&self.parameters(), seed)));
        (0.06 * self.of_tile(1) + 0.04 * self.of_tile(seed) + 0.03 * own).exp()
    }

    /// A normal draw that is the same for all candidates that share a tile.
    fn of_tile(&self, salt: u64) -> f64 {
        let tile = [self.family, self.tile_m, self.tile_n, self.warps];
        normal(&mut SmallRng::seed_from_u64(mix(&tile, salt)))
    }

    fn features(&self, shape: Shape, untuned: f64) -> Vec<f32> {
        let derived = self.derived(shape);
        let estimate = self.estimate_us(shape);
        let of_shape = [shape.m.ln(), shape.n.ln(), shape.k.ln(), untuned.ln()];
        let of_parameters = self.parameters();
        let of_both = [
            derived.blocks_per_sm,
            derived.waves.ln(),
            derived.flops_per_block.ln(),
            derived.bytes.ln(),
            derived.accumulators_per_thread,
            self.shared_bytes().ln(),
            (shape.m / f64::from(self.tile_m)).ceil() * f64::from(self.tile_m) / shape.m,
            (shape.n / f64::from(self.tile_n)).ceil() * f64::from(self.tile_n) / shape.n,
            (estimate / untuned).ln(),
        ];
        let parameters = of_parameters.into_iter().map(f64::from);
        let all = of_shape.into_iter().chain(parameters).chain(of_both);
        all.map(|feature| feature as f32).collect()
    }
}
