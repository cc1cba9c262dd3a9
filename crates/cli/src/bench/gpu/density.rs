//! Many tenants: each on a partition of its own, against one after another on the whole GPU.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use serde_json::{Value as Json, json};
use weft_cuda::CudaExecutable;

use super::finding::{Finding, held};
use super::layout::singles;
use super::rig::{Rig, prepare};
use super::running::{Launched, run};
use crate::bench::statistics::median;
use crate::progress;
use crate::table::Table;

const MODEL: &str = "resnet50";
const BATCH: usize = 1;
const TENANTS: usize = 16;

/// How many times the images of one after another the partitions should give, and what is hoped for.
const LEAST_RATIO: f64 = 6.0;
const GOAL_RATIO: f64 = 10.0;

/// Turns of each way of running the tenants.
const ROUNDS: u32 = 3;

/// A way of running all tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// On the whole GPU, the next is launched when the one before has ended.
    Waited,
    /// On the whole GPU, all are launched at once and run one after another.
    Queued,
    /// On partitions, a thread for each tenant.
    Threads,
    /// On partitions, one thread for all tenants.
    OneThread,
}

impl Way {
    const ALL: [Way; 4] = [Way::Waited, Way::Queued, Way::Threads, Way::OneThread];

    fn in_words(self) -> &'static str {
        match self {
            Way::Waited => "whole GPU, one after another, each waited for",
            Way::Queued => "whole GPU, one after another, all queued",
            Way::Threads => "partitions, a thread each",
            Way::OneThread => "partitions, one thread",
        }
    }

    fn is_partitioned(self) -> bool {
        matches!(self, Way::Threads | Way::OneThread)
    }

    /// Runs of all tenants together per second.
    fn rate<T: Launched>(self, tenants: &[T], time: Duration) -> Result<f64> {
        let begin = Instant::now();
        let runs = match self {
            Way::Waited => sweeps(tenants, time, |tenants| tenants.iter().try_for_each(run))?,
            Way::Queued => sweeps(tenants, time, |tenants| {
                tenants.iter().try_for_each(T::launch)?;
                tenants.iter().try_for_each(T::wait)
            })?,
            Way::Threads => in_threads(tenants, time)?,
            Way::OneThread => polled(tenants, time)?,
        };
        Ok(runs as f64 / begin.elapsed().as_secs_f64())
    }
}

/// Runs all tenants over and over; how many runs that was.
fn sweeps<T>(tenants: &[T], time: Duration, sweep: impl Fn(&[T]) -> Result<()>) -> Result<usize> {
    let begin = Instant::now();
    let mut runs = 0;
    while runs == 0 || begin.elapsed() < time {
        sweep(tenants)?;
        runs += tenants.len();
    }
    Ok(runs)
}

/// Each tenant in a loop of its own.
fn in_threads<T: Launched>(tenants: &[T], time: Duration) -> Result<usize> {
    let all_are_there = Barrier::new(tenants.len());
    let in_a_loop = |tenant: &T| {
        all_are_there.wait();
        sweeps(std::slice::from_ref(tenant), time, |tenant| run(&tenant[0]))
    };
    thread::scope(|scope| {
        let loops: Vec<_> =
            tenants.iter().map(|tenant| scope.spawn(|| in_a_loop(tenant))).collect();
        loops.into_iter().try_fold(0, |runs, ended| {
            Ok(runs + ended.join().map_err(|_| anyhow!("a measuring thread panicked"))??)
        })
    })
}

/// One thread looks after all tenants, and launches whichever has ended.
fn polled<T: Launched>(tenants: &[T], time: Duration) -> Result<usize> {
    let begin = Instant::now();
    tenants.iter().try_for_each(T::launch)?;
    let mut runs = 0;
    while begin.elapsed() < time {
        for tenant in tenants {
            if tenant.is_finished()? {
                run_ended(tenant, &mut runs)?;
                tenant.launch()?;
            }
        }
    }
    tenants.iter().try_for_each(|tenant| run_ended(tenant, &mut runs))?;
    Ok(runs)
}

fn run_ended(tenant: &impl Launched, runs: &mut usize) -> Result<()> {
    tenant.wait()?;
    *runs += 1;
    Ok(())
}

/// Images per second of each way, round by round.
struct Rates(Vec<(Way, Vec<f64>)>);

impl Rates {
    fn of(&self, way: Way) -> f64 {
        let rates = self.0.iter().find(|(known, _)| *known == way);
        rates.map_or(f64::NAN, |(_, rates)| median(rates))
    }

    /// Relative to one after another without gaps between them, the faster of the two.
    fn ratio(&self, way: Way) -> f64 {
        self.of(way) / self.of(Way::Queued)
    }

    /// What the better of the two ways on partitions gives.
    fn best_ratio(&self) -> f64 {
        self.ratio(Way::Threads).max(self.ratio(Way::OneThread))
    }

    fn table(&self) -> Table {
        let mut table = Table::new(["how", "images/s", "ratio", "held", "goal"]);
        for way in Way::ALL {
            let ratio = self.ratio(way);
            let judged = |least: f64| {
                if way.is_partitioned() { held(ratio >= least) } else { String::new() }
            };
            table.row([
                way.in_words().to_string(),
                format!("{:.0}", self.of(way)),
                format!("{ratio:.2}"),
                judged(LEAST_RATIO),
                judged(GOAL_RATIO),
            ]);
        }
        table
    }

    fn json(&self, tenants: usize) -> Json {
        let way = |way: Way| json!({ "how": way.in_words(), "images_per_s": self.of(way), "ratio": self.ratio(way) });
        json!({
            "tenants": tenants,
            "ways": Way::ALL.map(way),
            "ratio": self.best_ratio(),
            "held": self.best_ratio() >= LEAST_RATIO,
        })
    }
}

/// Measures the tenants in each way, in turns.
pub(super) fn measure(rig: &Rig, budget: Duration) -> Result<Finding> {
    let sets = singles(rig.device().layout(), TENANTS);
    let whole = rig.whole()?;
    let (mut apart, mut together) = (Vec::new(), Vec::new());
    for (tenant, units) in sets.iter().enumerate() {
        progress::show(format!("density: preparing tenant {} of {}", tenant + 1, sets.len()));
        let model = rig.load_seeded(MODEL, tenant as u64)?;
        apart.push(prepare(&model, &*rig.partition(units)?, BATCH)?);
        together.push(prepare(&model, &whole, BATCH)?);
    }
    let rates = rates(&apart, &together, budget / ROUNDS)?;
    let sizes = rig.device().layout().sm_counts();
    Ok(Finding {
        about: format!(
            "{} tenants of {MODEL} at batch {BATCH} with weights of their own, on partitions of {} SMs or on the whole \
             GPU; ratio to all queued; held from {LEAST_RATIO:.0} on, the goal is {GOAL_RATIO:.0}",
            sets.len(),
            sizes.iter().min().copied().unwrap_or_default(),
        ),
        table: rates.table().render(),
        notes: Vec::new(),
        json: rates.json(sets.len()),
        failures: Vec::new(),
    })
}

fn rates(apart: &[CudaExecutable], together: &[CudaExecutable], turn: Duration) -> Result<Rates> {
    let mut rates: Vec<(Way, Vec<f64>)> = Way::ALL.map(|way| (way, Vec::new())).to_vec();
    for round in 0..=ROUNDS {
        for (way, rates) in &mut rates {
            progress::show(format!("density: {}, round {round} of {ROUNDS}", way.in_words()));
            let tenants = if way.is_partitioned() { apart } else { together };
            // The first round warms up.
            let time = if round == 0 { Duration::ZERO } else { turn };
            let rate = way.rate(tenants, time)? * BATCH as f64;
            if round > 0 {
                rates.push(rate);
            }
        }
    }
    Ok(Rates(rates))
}

#[cfg(test)]
mod tests {
    use super::super::running::testing::Counted;
    use super::*;

    fn tenants(count: usize) -> Vec<Counted> {
        (0..count).map(|_| Counted::default()).collect()
    }

    #[test]
    fn every_way_counts_every_run_of_every_tenant() {
        for way in Way::ALL {
            let tenants = tenants(3);
            let time = Duration::from_millis(2);
            let begin = Instant::now();
            let rate = way.rate(&tenants, time).unwrap();
            let elapsed = begin.elapsed();
            assert!(elapsed >= time, "{way:?}");
            let runs: usize = tenants.iter().map(Counted::runs).sum();
            assert!(tenants.iter().all(|tenant| tenant.runs() > 0), "{way:?}");
            assert!(
                rate >= runs as f64 / elapsed.as_secs_f64() * 0.999,
                "{way:?}: {rate} of {runs} runs"
            );
            assert!(
                rate <= runs as f64 / time.as_secs_f64() * 1.001,
                "{way:?}: {rate} of {runs} runs"
            );
        }
    }

    #[test]
    fn what_is_queued_is_launched_before_any_of_it_is_waited_for() {
        let tenants = [Counted::default(), Counted { fails_at: Some(1), ..Default::default() }];
        assert!(Way::Queued.rate(&tenants, Duration::ZERO).is_err());
        assert_eq!(tenants[0].runs(), 0);
        let tenants = [Counted::default(), Counted { fails_at: Some(1), ..Default::default() }];
        assert!(Way::Waited.rate(&tenants, Duration::ZERO).is_err());
        assert_eq!(tenants[0].runs(), 1);
    }

    #[test]
    fn a_tenant_that_fails_is_reported_by_every_way() {
        for way in Way::ALL {
            let tenants = [Counted::default(), Counted { fails_at: Some(1), ..Default::default() }];
            let error = way.rate(&tenants, Duration::ZERO).unwrap_err();
            assert_eq!(error.to_string(), "launch 1 failed", "{way:?}");
        }
    }

    #[test]
    fn ratios_are_to_the_faster_of_the_ways_without_partitions() {
        let rates = Rates(vec![
            (Way::Waited, vec![1000.0]),
            (Way::Queued, vec![1900.0, 2000.0, 2100.0]),
            (Way::Threads, vec![12_000.0]),
            (Way::OneThread, vec![11_000.0]),
        ]);
        assert_eq!(rates.ratio(Way::Waited), 0.5);
        assert_eq!(rates.best_ratio(), 6.0);
        assert_eq!(rates.json(16)["held"], true);
        assert_eq!(
            rates.table().render(),
            "\
how                                            images/s  ratio  held  goal
---------------------------------------------  --------  -----  ----  ----
whole GPU, one after another, each waited for      1000   0.50
whole GPU, one after another, all queued           2000   1.00
partitions, a thread each                         12000   6.00  yes   NO
partitions, one thread                            11000   5.50  NO    NO"
        );
    }
}
