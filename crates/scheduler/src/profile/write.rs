//! Profiles in, the profile file as text out.

use std::fmt::Write;

use super::set::ProfileSet;
use super::table::Profile;
use super::{BYTES_PER_GB, BYTES_PER_MB};

impl ProfileSet {
    /// The profile file, which reads back as the same profiles where bytes are whole numbers.
    pub fn to_toml(&self) -> String {
        let device = &self.device;
        let mut text = String::new();
        let mut line = |content: String| {
            text.push_str(&content);
            text.push('\n');
        };
        line("[device]".into());
        line(format!("name = {}", quoted(&device.name)));
        line(format!("units = {}", device.units));
        line(format!("unit = {}", quoted(&device.unit)));
        line(format!("bandwidth_gb_per_s = {}", device.bandwidth_bytes_per_s / BYTES_PER_GB));
        line(format!("memory_mb = {}", device.memory_bytes as f64 / BYTES_PER_MB));
        for (name, profile) in &self.profiles {
            line(format!("\n[models.{}]", key(name)));
            line(format!("batches = {:?}", profile.batches()));
            line(format!("units = {:?}", profile.units()));
            let latency_us =
                |batch, units| format!("{}", profile.latency(batch, units).nanos() as f64 / 1e3);
            line(format!("latency_us = {}", rows(profile, latency_us)));
            let dram_mb =
                |batch, units| format!("{}", profile.dram_bytes(batch, units) / BYTES_PER_MB);
            line(format!("dram_mb = {}", rows(profile, dram_mb)));
            line(format!("memory_mb = {}", profile.memory_bytes as f64 / BYTES_PER_MB));
        }
        text
    }
}

/// A table with one row per batch.
fn rows(profile: &Profile, cell: impl Fn(u32, u32) -> String) -> String {
    let mut text = String::from("[\n");
    for &batch in profile.batches() {
        let cells: Vec<String> = profile.units().iter().map(|&units| cell(batch, units)).collect();
        writeln!(text, "  [{}],", cells.join(", ")).expect("a string takes any text");
    }
    text + "]"
}

/// A name as a key: bare where it may be.
fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.to_string(),
        false => quoted(name),
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                write!(quoted, "\\u{:04X}", c as u32).expect("a string takes any text");
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
