//! `weft devices`: what is here.

use anyhow::Result;
use clap::Args;
use serde_json::{Value as Json, json};
use weft_cpu::{CpuDevice, peak_gflops};
use weft_cuda::{CudaDevice, CudaOptions};
use weft_device::{Device, DeviceDescription, DeviceError, UnitSet};

use crate::table::bytes;
use crate::terminal;

#[derive(Args)]
pub(crate) struct Options {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A device that is here.
struct Present {
    about: DeviceDescription,
    units: UnitSet,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let cpu = cpu()?;
    let gpus = gpus();
    if options.json {
        let mut devices = vec![json(&cpu)];
        let mut absent = json!({});
        match &gpus {
            Ok(gpus) => devices.extend(gpus.iter().map(json)),
            Err(why) => absent = json!({ "cuda": why.to_string() }),
        }
        let report = json!({ "devices": devices, "absent": absent });
        return Ok(terminal::print(&serde_json::to_string_pretty(&report)?)?);
    }
    print(&cpu, "cpu")?;
    match gpus {
        Ok(gpus) => {
            for (number, gpu) in gpus.iter().enumerate() {
                print(gpu, &format!("cuda:{number}"))?;
            }
        }
        Err(why) => terminal::print(&format!("cuda  none: {why}"))?,
    }
    Ok(())
}

fn cpu() -> Result<Present> {
    let device = CpuDevice::new()?;
    let peak_gflops_per_unit = Some(peak_gflops(device.isa()));
    let about = DeviceDescription { peak_gflops_per_unit, ..device.description() };
    Ok(Present { about, units: device.units() })
}

/// The GPUs, or why there is none.
fn gpus() -> Result<Vec<Present>, DeviceError> {
    let count = CudaDevice::count()?;
    if count == 0 {
        let why = "the driver shows no GPU to this process".to_string();
        return Err(DeviceError::Unavailable { device: "the CUDA device".into(), why });
    }
    let open = |number| {
        let device = CudaDevice::open(number, CudaOptions::default())?;
        Ok(Present { about: device.description(), units: device.layout().all() })
    };
    (0..count).map(open).collect()
}

fn json(Present { about, units }: &Present) -> Json {
    json!({
        "kind": about.kind,
        "name": about.name,
        "units": units.as_slice(),
        "unit": about.unit,
        "instruction_set": about.instruction_set,
        "memory_bytes": about.memory_bytes,
        "peak_gflops_per_unit": about.peak_gflops_per_unit,
    })
}

fn print(Present { about, units }: &Present, name: &str) -> Result<()> {
    terminal::print(&format!("{name}  {}", about.name))?;
    terminal::print(&format!(
        "  units            {} (a unit is one {}): {units}",
        about.unit_count, about.unit
    ))?;
    terminal::print(&format!("  instruction set  {}", about.instruction_set))?;
    if let Some(peak) = about.peak_gflops_per_unit {
        terminal::print(&format!(
            "  peak             {peak:.0} GFLOP/s of f32 per {}, measured in registers",
            about.unit
        ))?;
    }
    if let Some(memory) = about.memory_bytes {
        terminal::print(&format!("  memory           {}", bytes(memory as usize)))?;
    }
    Ok(())
}
