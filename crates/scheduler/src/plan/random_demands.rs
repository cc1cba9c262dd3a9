//! Random demands for tests: models with overhead, work and a knee, under objectives and loads from idle to hopeless.

use crate::plan::demand::{DeviceFacts, ModelDemand, Slo};
use crate::plan::dice::Dice;
use crate::profile::{Profile, ProfilePoint};
use crate::time::Span;

const MEMORY_UNIT_BYTES: u64 = 1 << 20;

/// What kind of demands are drawn.
pub(crate) struct Kind {
    pub(crate) models: usize,
    pub(crate) units: u32,
    pub(crate) batches: Vec<u32>,
    /// The work that is asked for, as a share of what the device could do at the best batches.
    pub(crate) load: f64,
}

/// Demands that own their profiles.
pub(crate) struct RandomDemands {
    profiles: Vec<Profile>,
    slos: Vec<Option<Slo>>,
    rates_per_s: Vec<f64>,
    weights: Vec<f64>,
    max_batch: u32,
    pub(crate) facts: DeviceFacts,
}

impl RandomDemands {
    pub(crate) fn draw(kind: &Kind, dice: &mut Dice) -> Self {
        let between = |dice: &mut Dice, low: f64, high: f64| low + (high - low) * dice.share();
        let mut drawn = Self {
            profiles: Vec::new(),
            slos: Vec::new(),
            rates_per_s: Vec::new(),
            weights: Vec::new(),
            max_batch: *kind.batches.last().unwrap(),
            facts: DeviceFacts { units: kind.units, memory_bytes: 0 },
        };
        let shares: Vec<f64> = (0..kind.models).map(|_| between(dice, 0.05, 1.0).powi(2)).collect();
        let all_shares: f64 = shares.iter().sum();
        for share in shares {
            let (overhead_us, work_us) = (between(dice, 50.0, 800.0), between(dice, 100.0, 2000.0));
            let knee = between(dice, 1.0, f64::from(kind.units) + 1.0);
            let latency_us = |batch: u32, units: u32| {
                overhead_us
                    + work_us * f64::from(batch)
                        / f64::from(units).min(knee * f64::from(batch).sqrt())
            };
            let grid = kind
                .batches
                .iter()
                .flat_map(|&batch| (1..=kind.units).map(move |units| (batch, units)));
            let points: Vec<ProfilePoint> = grid
                .map(|(batch, units)| {
                    let latency = Span::from_us(latency_us(batch, units));
                    ProfilePoint { batch, units, latency, dram_bytes: 0.0 }
                })
                .collect();
            let memory_bytes = MEMORY_UNIT_BYTES * (1 + dice.below(8) as u64);
            drawn.profiles.push(Profile::new(&points, memory_bytes).unwrap());
            let tightness = between(dice, 0.8, 2.6).exp();
            let slo = Slo {
                percentile: [0.9, 0.99, 0.99, 0.999][dice.below(4)],
                latency: Span::from_us(latency_us(1, kind.units) * tightness),
            };
            drawn.slos.push(Some(slo));
            let unit_us = latency_us(drawn.max_batch, 1) / f64::from(drawn.max_batch);
            drawn
                .rates_per_s
                .push(kind.load * f64::from(kind.units) * share / all_shares * 1e6 / unit_us);
            drawn.weights.push(between(dice, 0.2, 3.0));
        }
        let all_bytes: u64 = drawn.profiles.iter().map(|profile| profile.memory_bytes).sum();
        let memory_share = if dice.below(4) == 0 { between(dice, 0.3, 1.0) } else { 1.0 };
        drawn.facts.memory_bytes = (all_bytes as f64 * memory_share) as u64;
        drawn
    }

    /// Now and then a model asks for nothing, is best effort, or is promised what cannot be.
    pub(crate) fn spoil(&mut self, dice: &mut Dice) {
        for model in 0..self.slos.len() {
            match dice.below(8) {
                0 => self.rates_per_s[model] = 0.0,
                1 => self.slos[model] = None,
                2 => self.slos[model].as_mut().unwrap().latency = Span::from_us(40.0),
                3 => self.weights[model] = 0.0,
                _ => {}
            }
        }
    }

    /// The same rate in all, falling as one over a model's rank.
    pub(crate) fn rank_rates(&mut self) {
        let all: f64 = self.rates_per_s.iter().sum();
        let ranks: f64 = (1..=self.rates_per_s.len()).map(|rank| 1.0 / rank as f64).sum();
        for (rate, rank) in self.rates_per_s.iter_mut().zip(1..) {
            *rate = all / ranks / f64::from(rank);
        }
    }

    pub(crate) fn scale_rates(&mut self, factor: f64) {
        self.rates_per_s.iter_mut().for_each(|rate| *rate *= factor);
    }

    pub(crate) fn demands(&self) -> Vec<ModelDemand<'_>> {
        let demand = |model: usize| ModelDemand {
            name: format!("model-{model}"),
            profile: &self.profiles[model],
            slo: self.slos[model],
            rate_per_s: self.rates_per_s[model],
            slowdown: 1.0,
            weight: self.weights[model],
            max_batch: self.max_batch,
        };
        (0..self.profiles.len()).map(demand).collect()
    }
}
