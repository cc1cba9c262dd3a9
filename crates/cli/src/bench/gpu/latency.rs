//! How long one run of each model takes on the whole GPU, side by side with PyTorch.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value as Json, json};
use weft_cuda::{CudaModel, Precision};
use weft_device::LoadedModel;

use super::finding::Finding;
use super::headline::{self, Target};
use super::rig::{self, Rig};
use super::running::{AtLeast, latencies_us, warm_up};
use super::torch::{How, Torch};
use crate::bench::statistics::{median, quantile};
use crate::describe;
use crate::progress;
use crate::table::Table;

/// Turns that each engine gets at least.
const LEAST_ROUNDS: usize = 3;

/// Runs of one turn that are not counted, and runs that are.
const WARM_UP_RUNS: usize = 10;
const RUNS: usize = 50;

/// One model at one batch; the times of each round in milliseconds.
struct Case {
    model: String,
    batch: usize,
    /// What is asked of it, where something is.
    target: Option<Target>,
    weft_ms: Vec<Vec<f64>>,
    torch_ms: Option<TorchTimes>,
}

#[derive(Default)]
struct TorchTimes {
    eager_ms: Vec<Vec<f64>>,
    graph_ms: Vec<Vec<f64>>,
}

impl Case {
    fn median_ms(&self) -> f64 {
        median(&self.weft_ms.concat())
    }

    /// How much faster than PyTorch's CUDA graph: the median over rounds of the ratio of their medians.
    fn speed(&self) -> Option<f64> {
        let theirs = &self.torch_ms.as_ref()?.graph_ms;
        let ratios: Vec<f64> = self
            .weft_ms
            .iter()
            .zip(theirs)
            .map(|(weft, torch)| median(torch) / median(weft))
            .collect();
        Some(median(&ratios))
    }

    /// Which of its targets it reaches, in a word.
    fn reached(&self) -> &'static str {
        let time = self.median_ms();
        match self.target {
            None => "",
            Some(target) if time <= target.goal_ms => "goal",
            Some(target) if time <= target.to_close_ms => "yes",
            Some(_) => "NO",
        }
    }

    fn json(&self) -> Json {
        let weft = self.weft_ms.concat();
        let rounds = |rounds: &[Vec<f64>]| -> Vec<f64> {
            rounds.iter().map(|times| median(times)).collect()
        };
        json!({
            "model": self.model,
            "batch": self.batch,
            "weft_ms_p10": quantile(&weft, 0.1),
            "weft_ms_p50": median(&weft),
            "weft_ms_p90": quantile(&weft, 0.9),
            "weft_ms_by_round": rounds(&self.weft_ms),
            "torch_eager_ms_by_round": self.torch_ms.as_ref().map(|times| rounds(&times.eager_ms)),
            "torch_graph_ms_by_round": self.torch_ms.as_ref().map(|times| rounds(&times.graph_ms)),
            "speed": self.speed(),
            "to_close_ms": self.target.map(|target| target.to_close_ms),
            "goal_ms": self.target.map(|target| target.goal_ms),
            "held": self.target.map(|target| self.median_ms() <= target.to_close_ms),
        })
    }
}

/// Times each model at its batches.
pub(super) fn measure(
    rig: &Rig,
    cases: &[(String, Vec<usize>)],
    budget: Duration,
    torch: Option<&mut Torch>,
) -> Finding {
    let version = torch.as_ref().map(|torch| torch.version.clone());
    let mut comparison = Comparison { rig, budget, torch, notes: Vec::new() };
    let (mut measured, mut failures) = (Vec::new(), Vec::new());
    for (name, batches) in cases {
        progress::show(format!("{name}: loading"));
        let model = match rig.load(name) {
            Ok(model) => model,
            Err(error) => {
                failures.push(format!("{name}: {}", describe(&error)));
                continue;
            }
        };
        for &batch in batches {
            match comparison.case(&model, batch) {
                Ok(case) => {
                    progress::note(in_a_line(&case));
                    measured.push(case);
                }
                Err(error) => failures.push(format!("{name}, batch {batch}: {}", describe(&error))),
            }
        }
    }
    let about = format!(
        "ms of one run on all {} SMs at {}, inputs on the GPU, launched and waited for; engines in turns, medians and \
         tenth to ninetieth percentile{}",
        rig.device().chip().sm_count,
        rig.precision(),
        version.as_ref().map_or_else(String::new, |version| format!(
            "; speed is relative to the CUDA graph of PyTorch {version}, above 1 Weft is faster"
        ))
    );
    let cases: Vec<Json> = measured.iter().map(Case::json).collect();
    let json = json!({ "torch": version, "cases": cases });
    Finding { about, table: table(&measured).render(), notes: comparison.notes, json, failures }
}

/// What cases are measured with.
struct Comparison<'a> {
    rig: &'a Rig,
    budget: Duration,
    torch: Option<&'a mut Torch>,
    notes: Vec<String>,
}

impl Comparison<'_> {
    fn case(&mut self, model: &CudaModel, batch: usize) -> Result<Case> {
        let name = model.name();
        progress::show(format!("{name}, batch {batch}: preparing"));
        let executable = rig::prepare(model, &*self.rig.whole()?, batch)?;
        progress::show(format!("{name}, batch {batch}: preparing PyTorch"));
        // What it has not built yet it builds now, and may find that it cannot.
        let has_torch = self.torch_round(name, batch, 1).is_some();
        let target = headline::find(name, batch).filter(|_| self.rig.precision() == Precision::F16);
        let mut case = Case {
            model: name.to_string(),
            batch,
            target,
            weft_ms: Vec::new(),
            torch_ms: has_torch.then(TorchTimes::default),
        };
        let begin = Instant::now();
        while case.weft_ms.len() < LEAST_ROUNDS || begin.elapsed() < self.budget {
            progress::show(format!("{name}, batch {batch}: round {}", case.weft_ms.len() + 1));
            warm_up(&executable, WARM_UP_RUNS)?;
            let times = latencies_us(&executable, AtLeast { runs: RUNS, time: Duration::ZERO })?;
            case.weft_ms.push(times.into_iter().map(|time| time * 1e-3).collect());
            if let Some(mut times) = case.torch_ms.take()
                && let Some((eager, graph)) = self.torch_round(name, batch, RUNS)
            {
                times.eager_ms.push(eager);
                times.graph_ms.push(graph);
                case.torch_ms = Some(times);
            }
        }
        Ok(case)
    }

    /// PyTorch's turn, eagerly and with a CUDA graph; `None` where it cannot, which is noted.
    fn torch_round(
        &mut self,
        name: &str,
        batch: usize,
        runs: usize,
    ) -> Option<(Vec<f64>, Vec<f64>)> {
        let torch = self.torch.as_deref_mut()?;
        let mut both = || {
            let shape = rig::shapes(&rig::inputs(name, batch, 0)?).swap_remove(0);
            let mut times = |how| torch.times_ms(name, &shape, how, WARM_UP_RUNS, runs);
            Ok((times(How::Eager)?, times(How::Graph)?))
        };
        both()
            .map_err(|error: anyhow::Error| {
                let why = describe(&error);
                self.notes.push(format!("{name}, batch {batch}: no PyTorch beside it: {why}"));
            })
            .ok()
    }
}

fn in_a_line(case: &Case) -> String {
    let torch = case.torch_ms.as_ref().map_or_else(String::new, |times| {
        format!(", PyTorch CUDA graph {:.3} ms", median(&times.graph_ms.concat()))
    });
    format!("{}, batch {}: {:.3} ms{torch}", case.model, case.batch, case.median_ms())
}

fn table(cases: &[Case]) -> Table {
    let has_torch = cases.iter().any(|case| case.torch_ms.is_some());
    let mut header = vec!["model", "batch", "weft ms", "p10-p90"];
    if has_torch {
        header.extend(["torch eager", "torch graph", "p10-p90", "speed"]);
    }
    header.extend(["to close", "goal", "held"]);
    let mut table = Table::new(header);
    for case in cases {
        let weft = case.weft_ms.concat();
        let mut cells = vec![
            case.model.clone(),
            case.batch.to_string(),
            format!("{:.3}", median(&weft)),
            spread(&weft),
        ];
        if let Some(times) = &case.torch_ms {
            let graph = times.graph_ms.concat();
            cells.extend([
                format!("{:.2}", median(&times.eager_ms.concat())),
                format!("{:.3}", median(&graph)),
                spread(&graph),
                case.speed().map_or_else(String::new, |speed| format!("{speed:.2}")),
            ]);
        } else if has_torch {
            cells.extend(std::iter::repeat_n(String::new(), 4));
        }
        let milliseconds =
            |time: Option<f64>| time.map_or_else(String::new, |ms| format!("{ms:.2}"));
        cells.extend([
            milliseconds(case.target.map(|target| target.to_close_ms)),
            milliseconds(case.target.map(|target| target.goal_ms)),
            case.reached().to_string(),
        ]);
        table.row(cells);
    }
    table
}

fn spread(times: &[f64]) -> String {
    format!("{:.3}-{:.3}", quantile(times, 0.1), quantile(times, 0.9))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(weft_ms: &[&[f64]], graph_ms: Option<&[&[f64]]>) -> Case {
        let rounds = |rounds: &[&[f64]]| rounds.iter().map(|times| times.to_vec()).collect();
        Case {
            model: "resnet50".into(),
            batch: 1,
            target: headline::find("resnet50", 1),
            weft_ms: rounds(weft_ms),
            torch_ms: graph_ms
                .map(|graph| TorchTimes { eager_ms: vec![vec![5.0]], graph_ms: rounds(graph) }),
        }
    }

    #[test]
    fn speed_compares_rounds_with_their_neighbours() {
        let drifting = case(&[&[1.0, 1.0], &[2.0], &[4.0]], Some(&[&[2.0], &[4.0], &[8.0, 8.0]]));
        assert_eq!(drifting.speed(), Some(2.0));
        assert_eq!(case(&[&[1.0]], None).speed(), None);
    }

    #[test]
    fn a_case_is_marked_by_the_hardest_target_that_it_reaches() {
        for (time, mark) in
            [(0.2, "goal"), (0.25, "goal"), (0.3, "yes"), (0.5, "yes"), (0.51, "NO")]
        {
            assert_eq!(case(&[&[time]], None).reached(), mark, "{time} ms");
        }
        assert_eq!(Case { target: None, ..case(&[&[9.0]], None) }.reached(), "");
    }

    #[test]
    fn columns_of_torch_are_there_where_any_case_has_them() {
        let alone = table(&[case(&[&[0.4]], None)]).render();
        assert!(!alone.contains("torch"), "{alone}");
        let both = table(&[case(&[&[0.4]], Some(&[&[0.8]])), case(&[&[0.6]], None)]).render();
        assert_eq!(
            both,
            "\
model     batch  weft ms      p10-p90  torch eager  torch graph      p10-p90  speed  to close  goal  held
--------  -----  -------  -----------  -----------  -----------  -----------  -----  --------  ----  ----
resnet50      1    0.400  0.400-0.400         5.00        0.800  0.800-0.800   2.00      0.50  0.25  yes
resnet50      1    0.600  0.600-0.600                                                    0.50  0.25  NO"
        );
    }

    #[test]
    fn json_says_what_was_measured_and_whether_it_is_held() {
        let json = case(&[&[0.4], &[0.6]], Some(&[&[0.8], &[1.2]])).json();
        assert_eq!(json["weft_ms_p50"], 0.5);
        assert_eq!(json["weft_ms_by_round"], json!([0.4, 0.6]));
        assert_eq!((&json["held"], &json["speed"]), (&json!(true), &json!(2.0)));
        assert!(case(&[&[0.4]], None).json()["torch_graph_ms_by_round"].is_null());
    }
}
