//! What it costs the host to move a model between two partitions that are prepared, and to prepare a further one.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::finding::{Finding, held};
use super::layout::disjoint;
use super::rig::{Rig, prepare};
use super::running::{AtLeast, Launched, latencies_us, microseconds, warm_up, while_running};
use crate::bench::statistics::{median, quantile};
use crate::progress;
use crate::table::Table;

const MODEL: &str = "resnet50";
const BATCH: usize = 1;

/// The SMs of each partition.
const SMS: u32 = 32;

/// How much longer a launch may take on the host where it is on the other partition than the one before.
const MOST_US: f64 = 100.0;

/// Launches that switch, and as many that do not.
const LEAST_PAIRS: usize = 2000;

const WARM_UP_RUNS: usize = 20;

/// Runs that show what those during a preparation would take without it.
const UNDISTURBED_RUNS: usize = 200;

/// Host times of launches in microseconds: a launch where the one before was, then one on the other partition.
#[derive(Default)]
struct Launches {
    staying_us: Vec<f64>,
    switching_us: Vec<f64>,
}

impl Launches {
    /// What switching adds, launch by launch.
    fn added_us(&self) -> Vec<f64> {
        self.switching_us.iter().zip(&self.staying_us).map(|(switch, stay)| switch - stay).collect()
    }

    fn is_held(&self) -> bool {
        quantile(&self.added_us(), 0.99) < MOST_US
    }
}

/// Launches twice here, twice there, and so on; each run is waited for, outside what is timed.
fn alternate<T: Launched>(places: [&T; 2], length: AtLeast) -> Result<Launches> {
    let launch_us = |place: &T| -> Result<f64> {
        let start = Instant::now();
        place.launch()?;
        let time = microseconds(start.elapsed());
        place.wait()?;
        Ok(time)
    };
    let begin = Instant::now();
    let mut launches = Launches::default();
    launch_us(places[0])?;
    for turn in 0.. {
        if turn >= length.runs && begin.elapsed() >= length.time {
            break;
        }
        launches.staying_us.push(launch_us(places[turn % 2])?);
        launches.switching_us.push(launch_us(places[(turn + 1) % 2])?);
    }
    Ok(launches)
}

/// How long it took to make partitions with their graphs ready, and what that cost the model on another one.
struct Preparations {
    /// The first partition: kernels may have to be compiled and measured.
    first_ms: f64,
    /// A further partition of the same size.
    further_ms: f64,
    /// A further partition, while the model runs on another one.
    meanwhile_ms: f64,
    /// Runs on another partition while nothing is prepared.
    undisturbed_us: Vec<f64>,
    /// Runs on another partition meanwhile.
    meanwhile_us: Vec<f64>,
}

/// Measures switching, and what is prepared for it.
pub(super) fn measure(rig: &Rig, budget: Duration) -> Result<Finding> {
    let sets = disjoint(rig.device().layout(), &[SMS; 3])?;
    let model = rig.load(MODEL)?;
    let timed = |index: usize| {
        progress::show(format!("switching: preparing partition {} of {}", index + 1, sets.len()));
        let start = Instant::now();
        let executable = prepare(&model, &*rig.partition(&sets[index])?, BATCH)?;
        Ok::<_, anyhow::Error>((executable, start.elapsed().as_secs_f64() * 1e3))
    };
    let (here, first_ms) = timed(0)?;
    let (there, further_ms) = timed(1)?;
    for place in [&here, &there] {
        warm_up(place, WARM_UP_RUNS)?;
    }
    let launches = alternate([&here, &there], AtLeast { runs: LEAST_PAIRS, time: budget })?;
    let undisturbed_us =
        latencies_us(&here, AtLeast { runs: UNDISTURBED_RUNS, time: Duration::ZERO })?;
    let ((_, meanwhile_ms), meanwhile_us) = while_running(&here, || timed(2))?;
    let preparations =
        Preparations { first_ms, further_ms, meanwhile_ms, undisturbed_us, meanwhile_us };
    Ok(finding(&launches, &preparations))
}

fn finding(launches: &Launches, preparations: &Preparations) -> Finding {
    let added = launches.added_us();
    let mut table = Table::new(["launch", "p50 us", "p99 us", "held"]);
    let is_held = launches.is_held();
    for (name, times, mark) in [
        ("where the one before was", &launches.staying_us, String::new()),
        ("on the other partition", &launches.switching_us, String::new()),
        ("added by switching", &added, held(is_held)),
    ] {
        let time = |share| format!("{:.1}", quantile(times, share));
        table.row([name.to_string(), time(0.5), time(0.99), mark]);
    }
    let Preparations { first_ms, further_ms, meanwhile_ms, undisturbed_us, meanwhile_us } =
        preparations;
    let middle_and_tail =
        |times: &[f64]| format!("{:.0} us (p99 {:.0})", median(times), quantile(times, 0.99));
    Finding {
        about: format!(
            "host time of launching {MODEL} at batch {BATCH} on two partitions of {SMS} SMs in turns; held where switching \
             adds less than {MOST_US:.0} us in 99 of 100"
        ),
        table: table.render(),
        notes: vec![
            format!(
                "a partition with its graph was prepared in {first_ms:.0} ms at first, in {further_ms:.0} ms as a further one \
                 of that size, in {meanwhile_ms:.0} ms while the model ran on another"
            ),
            format!(
                "there a run took {}, and {} before",
                middle_and_tail(meanwhile_us),
                middle_and_tail(undisturbed_us)
            ),
        ],
        json: json!({
            "launches": launches.staying_us.len() + launches.switching_us.len(),
            "staying_us_p50": median(&launches.staying_us),
            "staying_us_p99": quantile(&launches.staying_us, 0.99),
            "switching_us_p50": median(&launches.switching_us),
            "switching_us_p99": quantile(&launches.switching_us, 0.99),
            "added_us_p50": median(&added),
            "added_us_p99": quantile(&added, 0.99),
            "held": is_held,
            "prepare_ms_first": first_ms,
            "prepare_ms_further": further_ms,
            "prepare_ms_while_running": meanwhile_ms,
            "run_us_p50_while_preparing": median(meanwhile_us),
            "run_us_p99_while_preparing": quantile(meanwhile_us, 0.99),
            "run_us_p50_undisturbed": median(undisturbed_us),
            "run_us_p99_undisturbed": quantile(undisturbed_us, 0.99),
        }),
        failures: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::running::testing::Counted;
    use super::*;

    #[test]
    fn every_second_launch_switches() {
        let places = [Counted::default(), Counted::default()];
        let length = AtLeast { runs: 10, time: Duration::ZERO };
        let launches = alternate([&places[0], &places[1]], length).unwrap();
        assert_eq!((launches.staying_us.len(), launches.switching_us.len()), (10, 10));
        // One launch goes before all others.
        assert_eq!((places[0].runs(), places[1].runs()), (11, 10));
    }

    #[test]
    fn what_counts_is_what_switching_adds() {
        let slow_host = Launches { staying_us: vec![500.0; 50], switching_us: vec![590.0; 50] };
        assert!(slow_host.is_held());
        let slow_switch = Launches { staying_us: vec![5.0; 50], switching_us: vec![106.0; 50] };
        assert!(!slow_switch.is_held());
    }

    #[test]
    fn the_table_says_how_long_preparing_takes() {
        let launches = Launches { staying_us: vec![5.0; 3], switching_us: vec![7.5; 3] };
        let preparations = Preparations {
            first_ms: 2000.0,
            further_ms: 60.0,
            meanwhile_ms: 70.0,
            undisturbed_us: vec![800.0; 3],
            meanwhile_us: vec![900.0; 3],
        };
        let finding = finding(&launches, &preparations);
        assert_eq!(
            finding.table,
            "\
launch                    p50 us  p99 us  held
------------------------  ------  ------  ----
where the one before was     5.0     5.0
on the other partition       7.5     7.5
added by switching           2.5     2.5  yes"
        );
        assert!(finding.notes[0].contains("2000 ms") && finding.notes[0].contains("60 ms"));
        assert_eq!(
            finding.notes[1],
            "there a run took 900 us (p99 900), and 800 us (p99 800) before"
        );
        assert_eq!(finding.json["added_us_p99"], 2.5);
    }
}
