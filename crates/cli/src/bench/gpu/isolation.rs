//! What a neighbour costs: a small model alone and beside a large one, on partitions of their own and without.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value as Json, json};

use super::finding::{Finding, held};
use super::layout::disjoint;
use super::rig::{Rig, prepare};
use super::running::{AtLeast, Launched, beside, latencies_us, warm_up};
use crate::bench::statistics::{median, quantile};
use crate::progress;
use crate::table::Table;

/// The model that is measured, and the SMs of its partition.
const SUBJECT: (&str, usize, u32) = ("resnet50", 1, 24);

/// The model that loops beside it, and the SMs of its partition.
const NEIGHBOUR: (&str, usize, u32) = ("vgg16", 32, 80);

/// How many times longer the slowest runs may take beside the neighbour.
const MOST_P99_RATIO: f64 = 1.5;

/// Runs alone, and as many beside the neighbour.
const LEAST_RUNS: usize = 2000;

/// Turns alone and beside the neighbour, so that both see the same drift.
const ROUNDS: u32 = 4;

const WARM_UP_RUNS: usize = 50;

/// One pair of models in one arrangement; times in microseconds.
struct Pair {
    place: String,
    is_partitioned: bool,
    alone_us: Vec<f64>,
    beside_us: Vec<f64>,
    /// How often the neighbour ran per second.
    neighbour_rate: f64,
}

impl Pair {
    fn p99_ratio(&self) -> f64 {
        quantile(&self.beside_us, 0.99) / quantile(&self.alone_us, 0.99)
    }

    /// Whether the promise is held; nothing is promised without partitions.
    fn is_held(&self) -> Option<bool> {
        self.is_partitioned.then(|| self.p99_ratio() <= MOST_P99_RATIO)
    }

    fn json(&self) -> Json {
        json!({
            "place": self.place,
            "is_partitioned": self.is_partitioned,
            "runs": [self.alone_us.len(), self.beside_us.len()],
            "alone_us_p50": median(&self.alone_us),
            "alone_us_p99": quantile(&self.alone_us, 0.99),
            "beside_us_p50": median(&self.beside_us),
            "beside_us_p99": quantile(&self.beside_us, 0.99),
            "p99_ratio": self.p99_ratio(),
            "neighbour_runs_per_s": self.neighbour_rate,
            "held": self.is_held(),
        })
    }
}

/// Measures the pair on disjoint partitions, then with every SM open to both.
pub(super) fn measure(rig: &Rig, budget: Duration) -> Result<Finding> {
    let length = AtLeast { runs: LEAST_RUNS, time: budget };
    let (subject_name, subject_batch, subject_sms) = SUBJECT;
    let (neighbour_name, neighbour_batch, neighbour_sms) = NEIGHBOUR;
    let layout = rig.device().layout();
    let sets = disjoint(layout, &[subject_sms, neighbour_sms])?;

    progress::show("isolation: preparing on partitions");
    let subject = prepare(&*rig.load(subject_name)?, &*rig.partition(&sets[0])?, subject_batch)?;
    let neighbour =
        prepare(&*rig.load(neighbour_name)?, &*rig.partition(&sets[1])?, neighbour_batch)?;
    let place =
        format!("{} and {} SMs", layout.sm_count_of(&sets[0]), layout.sm_count_of(&sets[1]));
    let apart = pair(place, true, &subject, &neighbour, length)?;
    drop((subject, neighbour));

    progress::show("isolation: preparing on the whole GPU");
    let other = rig.once_more()?;
    let subject = prepare(&*rig.load(subject_name)?, &*rig.whole()?, subject_batch)?;
    let neighbour = prepare(&*other.load(neighbour_name)?, &*other.whole()?, neighbour_batch)?;
    let place = format!("all {} SMs shared", layout.total_sms());
    let shared = pair(place, false, &subject, &neighbour, length)?;

    let pairs = [apart, shared];
    Ok(Finding {
        about: format!(
            "us of {subject_name} at batch {subject_batch}, one run after another, alone and while {neighbour_name} at batch \
             {neighbour_batch} loops; held where p99 grows by at most {MOST_P99_RATIO}"
        ),
        table: table(&pairs).render(),
        notes: Vec::new(),
        json: pairs.iter().map(Pair::json).collect(),
        failures: Vec::new(),
    })
}

fn pair(
    place: String,
    is_partitioned: bool,
    subject: &impl Launched,
    neighbour: &impl Launched,
    length: AtLeast,
) -> Result<Pair> {
    let (mut alone_us, mut beside_us, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        progress::show(format!("isolation, {place}: round {} of {ROUNDS}", round + 1));
        warm_up(subject, WARM_UP_RUNS)?;
        alone_us.extend(latencies_us(subject, length.share(ROUNDS))?);
        let (times, rate) = beside(neighbour, || {
            warm_up(subject, WARM_UP_RUNS)?;
            latencies_us(subject, length.share(ROUNDS))
        })?;
        beside_us.extend(times);
        rates.push(rate);
    }
    Ok(Pair { place, is_partitioned, alone_us, beside_us, neighbour_rate: median(&rates) })
}

fn table(pairs: &[Pair]) -> Table {
    let mut table = Table::new([
        "SMs",
        "alone p50",
        "alone p99",
        "beside p50",
        "beside p99",
        "p99 ratio",
        "neighbour runs/s",
        "held",
    ]);
    for pair in pairs {
        let time = |times: &[f64], share| format!("{:.0}", quantile(times, share));
        table.row([
            pair.place.clone(),
            time(&pair.alone_us, 0.5),
            time(&pair.alone_us, 0.99),
            time(&pair.beside_us, 0.5),
            time(&pair.beside_us, 0.99),
            format!("{:.2}", pair.p99_ratio()),
            format!("{:.0}", pair.neighbour_rate),
            pair.is_held().map(held).unwrap_or_default(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::running::testing::Counted;
    use super::*;

    fn measured(is_partitioned: bool, beside_us: f64) -> Pair {
        Pair {
            place: "24 and 80 SMs".into(),
            is_partitioned,
            alone_us: vec![1000.0; 200],
            beside_us: vec![beside_us; 200],
            neighbour_rate: 150.0,
        }
    }

    #[test]
    fn the_promise_is_about_the_slowest_runs_on_partitions() {
        assert_eq!(measured(true, 1500.0).is_held(), Some(true));
        assert_eq!(measured(true, 1501.0).is_held(), Some(false));
        assert_eq!(measured(false, 9000.0).is_held(), None);
        let mut rarely_slow = measured(true, 1000.0);
        rarely_slow.beside_us[..5].fill(9000.0);
        assert_eq!(rarely_slow.is_held(), Some(false));
    }

    #[test]
    fn alone_and_beside_have_equally_many_runs() {
        let (subject, neighbour) = (Counted::default(), Counted::default());
        let length = AtLeast { runs: 40, time: Duration::ZERO };
        let pair = pair("here".into(), true, &subject, &neighbour, length).unwrap();
        assert_eq!((pair.alone_us.len(), pair.beside_us.len()), (40, 40));
        assert!(neighbour.runs() >= 4 && pair.neighbour_rate > 0.0);
    }

    #[test]
    fn nothing_is_held_or_broken_without_partitions() {
        let text = table(&[measured(true, 1200.0), measured(false, 4000.0)]).render();
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert!(lines[0].ends_with("1.20               150  yes"), "{text}");
        assert!(lines[1].ends_with("4.00               150"), "{text}");
    }
}
