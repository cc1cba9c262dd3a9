//! What `weft tune` found, for people and for machines.

use std::path::Path;

use anyhow::Result;
use weft_tuner::report::{OperatorReport, SizeReport};

use super::options::Options;
use crate::table::Table;
use crate::terminal;

/// The finals of one process, with what several have screened before.
pub(super) fn joined(finals: Vec<SizeReport>, screened: &[SizeReport]) -> Vec<SizeReport> {
    let join = |mut report: SizeReport| {
        let of_size =
            || screened.iter().filter(|other| other.partition_size == report.partition_size);
        let screening_s = of_size().map(|other| other.screening_s).fold(0.0, f64::max);
        let count = |read: fn(&SizeReport) -> usize| of_size().map(read).sum::<usize>();
        let (trials, repeated) = (count(|it| it.trials), count(|it| it.repeated));
        let (wrong, failed) = (count(|it| it.wrong), count(|it| it.failed));
        let benches = count(|it| it.benches);
        let compile_core_s = of_size().map(|other| other.compile_core_s).sum();
        report.total_s += screening_s;
        SizeReport {
            trials,
            repeated,
            wrong,
            failed,
            benches,
            screening_s,
            compile_core_s,
            ..report
        }
    };
    finals.into_iter().map(join).collect()
}

/// Prints what was found, as asked for, and the file that has it.
pub(super) fn print(options: &Options, reports: &[SizeReport], database: &Path) -> Result<()> {
    if options.json {
        terminal::print(&serde_json::to_string_pretty(reports)?)?;
        return Ok(());
    }
    for report in reports {
        terminal::print(&table(report).render())?;
        if !report.models.is_empty() {
            terminal::print(&format!("\n{}", models(report).render()))?;
        }
        terminal::print(&format!("\n{}", summary(report)))?;
    }
    terminal::print(&format!("in {}", database.display()))?;
    Ok(())
}

fn table(report: &SizeReport) -> Table {
    let mut table =
        Table::new(["operator", "times", "kernel", "us", "untuned us", "gain", "trials"]);
    for operator in &report.operators {
        let (Some(kernel), Some(time_us), Some(untuned_us)) =
            (&operator.kernel, operator.time_us, operator.untuned_time_us)
        else {
            continue;
        };
        table.row([
            operator.operator.clone(),
            operator.occurrences.to_string(),
            kernel.clone(),
            format!("{time_us:.1}"),
            format!("{untuned_us:.1}"),
            format!("{:.2}", untuned_us / time_us),
            operator.trials.unwrap_or(0).to_string(),
        ]);
    }
    table
}

fn models(report: &SizeReport) -> Table {
    let mut table = Table::new(["model", "batch", "untuned us", "tuned us", "gain"]);
    for model in &report.models {
        table.row([
            model.model.clone(),
            model.batch.to_string(),
            format!("{:.1}", model.untuned_us),
            format!("{:.1}", model.tuned_us),
            format!("{:.3}", model.untuned_us / model.tuned_us),
        ]);
    }
    table
}

fn summary(report: &SizeReport) -> String {
    let sum = |read: fn(&OperatorReport) -> Option<f64>| -> f64 {
        let all = report.operators.iter();
        all.filter_map(|operator| Some(read(operator)? * operator.occurrences)).sum()
    };
    let (tuned, untuned) = (sum(|it| it.time_us), sum(|it| it.untuned_time_us));
    let undecided = report.operators.iter().filter(|operator| operator.kernel.is_none()).count();
    let undecided = match undecided {
        0 => String::new(),
        count => format!("; {count} operators are not decided yet: run it again"),
    };
    format!(
        "size {}: operators {untuned:.0} -> {tuned:.0} us, {:.2} times as fast; {} trials on {} \
         partitions in {:.1} s ({:.0} trials/s), {} repeated, {} wrong, {} failed; {:.1} s for finals, {:.1} s for models; \
         all {:.1} s after {:.1} s of preparing; compiling took {:.1} core seconds{undecided}",
        report.partition_size,
        untuned / tuned,
        report.trials,
        report.benches,
        report.screening_s,
        report.trials as f64 / report.screening_s.max(1e-9),
        report.repeated,
        report.wrong,
        report.failed,
        report.finals_s,
        report.check_s,
        report.total_s,
        report.prepare_s,
        report.compile_core_s,
    )
}
