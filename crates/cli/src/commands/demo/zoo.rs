//! Models of the bundled zoo, run on one core and on all.

use std::time::Duration;

use anyhow::Result;
use weft_cpu::CpuDevice;
use weft_device::{Device, UnitSet};

use crate::bench::Subject;
use crate::model_file::{self, DimensionOptions};
use crate::progress;
use crate::table::{Table, bytes, count};

/// One model of each kind, small enough that all of them are made, loaded and run in seconds.
const MODELS: [&str; 6] =
    ["squeezenet1_1", "mobilenet_v2", "mobilenet_v3_large", "resnet18", "minilm_l6", "tiny_yolo"];

/// Runs each model for so long, and shows how long it takes.
pub(super) fn show(time: Duration) -> Result<()> {
    let device = CpuDevice::new()?;
    let about = device.description();
    println!("{}, {} {}s, {}\n", about.name, about.unit_count, about.unit, about.instruction_set);
    let all = device.units();
    let one: UnitSet = all.iter().take(1).collect();
    let mut table = Table::new(["model", "FLOP", "weights", "arena", "ms on 1 core", "ms on all"]);
    for name in MODELS {
        progress::show(format!("{name}: making weights, loading, running"));
        let path = model_file::resolve(&format!("zoo:{name}"))?;
        let mut medians = Vec::new();
        let mut subject = None;
        for units in [&one, &all] {
            let loaded = Subject::new(&path, 1, &DimensionOptions::default(), &device, units)?;
            medians.push(loaded.median_ms(time)?);
            subject = Some(loaded);
        }
        let Some(subject) = subject else { continue };
        let report = subject.report();
        table.row([
            name.into(),
            count(report.flops),
            bytes(report.weight_bytes),
            bytes(report.arena_bytes),
            format!("{:.2}", medians[0]),
            format!("{:.2}", medians[1]),
        ]);
    }
    progress::clear();
    println!("{}", table.render());
    Ok(())
}
