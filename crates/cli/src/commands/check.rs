//! `weft check`: what is in a model repository, what is agreed about it, and all that is wrong.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::{Value as Json, json};
use weft_repository::{Entry, Model, ModelSettings, Problem, Repository, RepositoryFiles, scan};

use crate::BAD_INPUT;
use crate::table::{Table, bytes};
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  weft check ./models
  weft check ./models --config production.toml --json

Nothing is loaded: whether a model can be read is found when it is served.

Exit code: 0 when nothing is wrong, 2 otherwise.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The model repository
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// The settings, where they are not weft.toml in the folder
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let files = RepositoryFiles { root: options.folder.clone(), settings: options.config.clone() };
    let repository = scan(&files)?;
    let text = match options.json {
        true => format!("{:#}", report(&repository)),
        false => described(&repository),
    };
    terminal::print(&text)?;
    Ok(match repository.all_problems().next() {
        None => ExitCode::SUCCESS,
        Some(_) => ExitCode::from(BAD_INPUT),
    })
}

fn described(repository: &Repository) -> String {
    let mut parts = Vec::new();
    if !repository.entries.is_empty() {
        parts.push(table(repository).render());
    }
    let lines = |problems: Vec<&Problem>| {
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let notes: Vec<&Problem> = repository.all_notes().collect();
    if !notes.is_empty() {
        parts.push(format!("Notes:\n{}", lines(notes)));
    }
    let problems: Vec<&Problem> = repository.all_problems().collect();
    let models = repository.models().count();
    let counted = |count: usize, thing: &str| match count {
        0 => format!("no {thing}s"),
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    };
    let summary = format!("{}, {}", counted(models, "model"), counted(problems.len(), "problem"));
    if !problems.is_empty() {
        parts.push(format!("Problems:\n{}", lines(problems)));
    }
    parts.push(summary);
    parts.join("\n\n")
}

fn table(repository: &Repository) -> Table {
    let header =
        ["model", "versions", "serves", "size", "SLO", "rate/s", "weight", "batch", "tenant"];
    let mut table = Table::new(header);
    for (name, entry) in &repository.entries {
        let Some(model) = &entry.model else {
            table.row(
                [name.escape_debug().to_string(), "broken".into()]
                    .into_iter()
                    .chain(std::iter::repeat_n(String::new(), header.len() - 2)),
            );
            continue;
        };
        let agreed = repository.model_settings(name);
        let of = |cell: fn(&ModelSettings) -> String| agreed.as_ref().map(cell).unwrap_or_default();
        table.row([
            name.clone(),
            listed(model.versions.keys()),
            listed(model.served_versions().keys()),
            bytes(usize::try_from(served_bytes(model)).unwrap_or(usize::MAX)),
            of(objective),
            of(|agreed| agreed.rate_per_s.map(|rate| rate.to_string()).unwrap_or_default()),
            of(|agreed| agreed.weight.to_string()),
            of(|agreed| agreed.max_batch.map(|most| most.to_string()).unwrap_or_default()),
            of(owner),
        ]);
    }
    table
}

fn listed<'a>(numbers: impl IntoIterator<Item = &'a u64>) -> String {
    numbers.into_iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

fn served_bytes(model: &Model) -> u64 {
    model.served_versions().values().map(|version| version.fingerprint.length_bytes()).sum()
}

fn objective(agreed: &ModelSettings) -> String {
    match agreed.slo {
        Some(slo) => format!("{} at {}", slo.latency, slo.percentile),
        None => "best effort".into(),
    }
}

fn owner(agreed: &ModelSettings) -> String {
    match (&agreed.tenant, agreed.is_shared) {
        (None, true) => "everybody".into(),
        (None, false) => "granted".into(),
        (Some(tenant), true) => format!("{tenant}, shared"),
        (Some(tenant), false) => tenant.clone(),
    }
}

fn report(repository: &Repository) -> Json {
    let models = repository.entries.iter().map(|(name, entry)| entry_json(repository, name, entry));
    let tenants = repository.settings.settings.as_ref().map(|settings| {
        let names: Vec<&String> = settings.tenants.keys().collect();
        json!(names)
    });
    let problems: Vec<Json> = repository.settings.problems.iter().map(problem_json).collect();
    json!({
        "models": models.collect::<Vec<_>>(),
        "settings": { "usable": repository.settings.settings.is_some(), "tenants": tenants, "problems": problems },
        "problems": repository.all_problems().count(),
    })
}

fn entry_json(repository: &Repository, name: &str, entry: &Entry) -> Json {
    let version = |(number, version): (&u64, &weft_repository::Version)| {
        json!({
            "version": number,
            "file": version.file.display().to_string(),
            "size_bytes": version.fingerprint.length_bytes(),
        })
    };
    let versions = |model: &Model| model.versions.iter().map(version).collect::<Vec<_>>();
    let serves = |model: &Model| model.served_versions().into_keys().collect::<Vec<_>>();
    json!({
        "name": name,
        "usable": entry.model.is_some(),
        "versions": entry.model.as_ref().map(versions).unwrap_or_default(),
        "serves": entry.model.as_ref().map(serves).unwrap_or_default(),
        "agreed": repository.model_settings(name).as_ref().map(agreed_json),
        "notes": entry.notes.iter().map(problem_json).collect::<Vec<_>>(),
        "problems": entry.problems.iter().map(problem_json).collect::<Vec<_>>(),
    })
}

fn agreed_json(agreed: &ModelSettings) -> Json {
    json!({
        "slo_ms": agreed.slo.map(|slo| slo.latency.us() * 1e-3),
        "percentile": agreed.slo.map(|slo| slo.percentile),
        "timeout_ms": agreed.timeout.map(|timeout| timeout.as_secs_f64() * 1e3),
        "rate_per_s": agreed.rate_per_s,
        "weight": agreed.weight,
        "priority": agreed.priority,
        "tenant": agreed.tenant,
        "shared": agreed.is_shared,
        "max_batch": agreed.max_batch,
        "max_queue": agreed.max_queue,
        "dimensions": agreed.dimensions,
        "memory_limit_bytes": agreed.memory_limit_bytes,
        "keep_loaded": agreed.keep_loaded,
        "idle_timeout_s": agreed.idle_timeout.map(|timeout| timeout.as_secs_f64()),
        "precision": agreed.precision.map(|precision| precision.to_string()),
    })
}

fn problem_json(problem: &Problem) -> Json {
    json!({ "file": problem.file.display().to_string(), "line": problem.line, "what": problem.what })
}
