//! `weft key`: a new API key, and the line that knows it.

use anyhow::Result;
use clap::Args;
use serde_json::json;
use weft_repository::generate_key;

use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  weft key
  weft key --json | jq -r .hash

The key goes to its owner and is kept nowhere else. Its hash goes into
weft.toml, under [tenants.NAME] or [admin].";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let generated = generate_key()?;
    let (key, hash) = (&generated.key, generated.hash.to_string());
    let text = match options.json {
        true => format!("{:#}", json!({ "key": key, "hash": hash })),
        false => format!("key   {key}\n\nkey_hashes = [\"{hash}\"]"),
    };
    Ok(terminal::print(&text)?)
}
