//! `weft devices`: what is here.

use anyhow::Result;
use clap::Args;
use serde_json::json;
use weft_cpu::{CpuDevice, peak_gflops};
use weft_device::Device;

use crate::table::bytes;

#[derive(Args)]
pub(crate) struct Options {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let device = CpuDevice::new()?;
    let about = device.description();
    let peak = peak_gflops(device.isa());
    if options.json {
        let cpu = json!({
            "kind": about.kind,
            "name": about.name,
            "units": device.units().as_slice(),
            "unit": about.unit,
            "instruction_set": about.instruction_set,
            "memory_bytes": about.memory_bytes,
            "peak_gflops_per_unit": peak,
        });
        println!("{}", serde_json::to_string_pretty(&json!({ "devices": [cpu] }))?);
        return Ok(());
    }
    println!("{}  {}", about.kind, about.name);
    println!(
        "  units            {} (a unit is one {}): {}",
        about.unit_count,
        about.unit,
        device.units()
    );
    println!("  instruction set  {}", about.instruction_set);
    println!(
        "  peak             {peak:.0} GFLOP/s of f32 per {}, measured in registers",
        about.unit
    );
    if let Some(memory) = about.memory_bytes {
        println!("  memory           {}", bytes(memory as usize));
    }
    println!("gpu  none: this version of Weft has no GPU device");
    Ok(())
}
