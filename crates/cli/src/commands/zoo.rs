//! `weft zoo`: standard architectures as ONNX files.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use weft_zoo::ZooOptions;

use crate::table::{Table, bytes, count};
use crate::terminal;

#[derive(Args)]
pub(crate) struct Options {
    /// The model; without one, the zoo is listed
    model: Option<String>,
    /// The file to write [default: MODEL.onnx]
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// What the weights are drawn from
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Put the weights into a file of their own beside the model
    #[arg(long)]
    external_data: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let Some(name) = &options.model else {
        if options.output.is_some() {
            bail!("which model? `weft zoo` lists them");
        }
        let mut table = Table::new(["model", "family", "parameters"]);
        for entry in weft_zoo::entries() {
            table.row([entry.name.into(), entry.family.into(), count(entry.parameters)]);
        }
        terminal::print(&table.render())?;
        return Ok(());
    };
    let graph = weft_zoo::build(name, &ZooOptions { seed: options.seed, ..Default::default() })?;
    let path = options.output.clone().unwrap_or_else(|| format!("{name}.onnx").into());
    if options.external_data {
        weft_onnx::save_with_external_data(&graph, &path)?;
    } else {
        weft_onnx::save(&graph, &path)?;
    }
    let weights: usize = graph
        .values()
        .iter()
        .filter_map(|value| value.constant.as_ref())
        .map(|t| t.size_bytes())
        .sum();
    terminal::print(&format!(
        "{}: {} nodes, {} of weights, seed {}",
        path.display(),
        graph.nodes().len(),
        bytes(weights),
        options.seed
    ))?;
    Ok(())
}
