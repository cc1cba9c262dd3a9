//! `weft load --find-capacity`: the highest rates at which a share of the requests is answered in time.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use weft_load::{Capacity, DELAY_PERCENTILE, Step, Stopped, find_capacity};
use weft_scheduler::Span;
use weft_simulator::Load;

use super::{NOTHING_ANSWERED, Options, Task, finish, interruption, json, open, show, tables};
use crate::progress;
use crate::table::Table;

pub(super) async fn run(task: Task, options: &Options) -> Result<ExitCode> {
    let is_searched = task
        .models
        .iter()
        .any(|model| model.slo.is_some() && !matches!(model.load, Load::ClosedLoop { .. }));
    ensure!(is_searched, "--find-capacity needs a model with --slo whose requests come at a rate");
    let Some(mut session) = open(&task).await? else {
        return Ok(ExitCode::from(NOTHING_ANSWERED));
    };
    let mut watch = |step: usize, done: &_| show(&format!("step {step}, "), done);
    let wanted = options.capacity();
    let found =
        find_capacity(&mut session, &task.run, &wanted, &mut watch, &mut interruption).await?;
    progress::clear();
    finish(options, &report(&task, options, &found), &text(&task, options, &found))?;
    let has_answers = found.steps.iter().any(|step| step.outcome.total().answered > 0);
    Ok(if has_answers { ExitCode::SUCCESS } else { ExitCode::from(NOTHING_ANSWERED) })
}

/// All requests that are due, per second.
fn rate(step: &Step) -> f64 {
    step.outcome.per_s(step.outcome.total().due)
}

fn text(task: &Task, options: &Options, found: &Capacity) -> String {
    let mut table = Table::new(["rates x", "due/s", "in time %", "worst model %", "p99 ms", ""]);
    for step in &found.steps {
        let models = step.outcome.models.iter();
        let worst = models.filter_map(|model| model.attainment()).fold(1.0, f64::min);
        table.row([
            format!("{:.3}", step.factor),
            format!("{:.1}", rate(step)),
            format!("{:.2}", step.outcome.attainment().unwrap_or(0.0) * 100.0),
            format!("{:.2}", worst * 100.0),
            tables::ms(step.outcome.total().latencies.quantile(0.99)),
            (if step.is_carried { "carried" } else { "too much" }).to_string(),
        ]);
    }
    let wanted = format!("{} % in time", options.target * 100.0);
    let bracket = match (found.best(), found.least_too_much()) {
        (Some(best), Some(beyond)) => format!(
            "{wanted} up to {:.1} requests/s (rates x {:.3}), not at {:.1} (x {:.3})",
            rate(best),
            best.factor,
            rate(beyond),
            beyond.factor
        ),
        (Some(best), None) => {
            format!(
                "{wanted} at {:.1} requests/s (rates x {:.3}) and more",
                rate(best),
                best.factor
            )
        }
        (None, Some(beyond)) => format!("not {wanted} even at {:.1} requests/s", rate(beyond)),
        (None, None) => format!("nothing is known about {wanted}"),
    };
    let title = format!("{} over {}", task.target.address, task.target.protocol);
    let mut parts = vec![title, table.render(), bracket];
    if found.steps.iter().any(|step| step.outcome.total().fell_behind()) {
        let behind = found.steps.iter().map(|step| step.outcome.total());
        let behind = behind.map(|total| total.send_delays.quantile(DELAY_PERCENTILE)).max();
        let behind = behind.unwrap_or(Span::ZERO);
        parts.push(format!(
            "WARNING: in some steps the generator fell behind, by up to {behind} at p99"
        ));
    }
    parts.extend(found.stopped.map(|stopped| format!("WARNING: {}", reason(stopped))));
    parts.join("\n\n")
}

fn reason(stopped: Stopped) -> &'static str {
    match stopped {
        Stopped::Interrupted => "the search was interrupted",
        Stopped::Generator => {
            "the generator fell behind in the last step; what lies beyond is the client's limit, not the server's"
        }
        Stopped::Steps => "the search ended after its most steps",
        Stopped::NothingToAttain => {
            "no request was due in a step; make it longer or the rates higher"
        }
    }
}

fn report(task: &Task, options: &Options, found: &Capacity) -> Value {
    let step = |step: &Step| {
        json!({
            "factor": step.factor,
            "due_per_s": rate(step),
            "is_carried": step.is_carried,
            "outcome": json::outcome_of(&step.outcome),
        })
    };
    json!({
        "server": task.target.address,
        "protocol": task.target.protocol.to_string(),
        "connections": task.session.connections,
        "shared_memory": task.session.shared_memory,
        "threads": task.session.threads,
        "seed": task.run.seed,
        "target": options.target,
        "carried_per_s": found.best().map(rate),
        "carried_factor": found.best().map(|step| step.factor),
        "too_much_per_s": found.least_too_much().map(rate),
        "too_much_factor": found.least_too_much().map(|step| step.factor),
        "stopped": found.stopped.map(reason),
        "steps": found.steps.iter().map(step).collect::<Vec<_>>(),
    })
}
