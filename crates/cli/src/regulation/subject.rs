//! Models of a mix on a GPU: timed step by step, and run by any schedule.

use std::sync::Arc;

use anyhow::{Result, ensure};
use weft_cuda::{CompiledMix, CudaDevice, CudaMix, CudaSegment};
use weft_device::UnitSet;
use weft_ir::Value;
use weft_scheduler::regulate::{Mix, MixModel, MixSchedule, Segment, StepTimes};
use weft_scheduler::{Span, UnitMask};

use crate::bench::median;
use crate::model_file::{self, DimensionOptions};
use crate::outputs::difference;
use crate::progress;

/// Numbers of units that steps are timed on, as far as there are so many; all of them besides.
const TIMED_UNITS: [u32; 7] = [1, 2, 3, 4, 6, 8, 11];

/// Runs that a median is taken of.
const RUNS: usize = 11;

/// How far results may be from those of a model alone, whose kernels differ.
const TOLERANCE: f64 = 2e-2;

/// A model of a mix as it is asked for.
#[derive(Clone, Debug)]
pub(crate) struct MixedModel {
    pub(crate) name: String,
    pub(crate) batch: usize,
}

/// A mix on a device.
pub(crate) struct Subject {
    mix: CudaMix,
    names: Vec<String>,
    inputs: Vec<Vec<Value>>,
    /// What each unit of schedules is on the device.
    units: Vec<UnitSet>,
}

impl Subject {
    pub(crate) fn new(
        device: &Arc<CudaDevice>,
        models: &[MixedModel],
        dimensions: &DimensionOptions,
    ) -> Result<Self> {
        let (mut loaded, mut inputs) = (Vec::new(), Vec::new());
        for (place, MixedModel { name, batch }) in models.iter().enumerate() {
            progress::show(format!("loading {name}"));
            let graph = model_file::load(&model_file::resolve(name)?)?;
            let shapes = dimensions.shapes(&graph, *batch)?;
            inputs.push(model_file::random_values(&graph, &shapes, place as u64)?);
            loaded.push((device.load_with_precision(name, &graph, device.precision()), shapes));
        }
        progress::show("preparing models".to_string());
        let mix = CudaMix::new(device, loaded)?;
        let names = models.iter().map(|model| format!("{} b{}", model.name, model.batch)).collect();
        let subject = Self { mix, names, inputs, units: units(device) };
        for (model, inputs) in subject.inputs.iter().enumerate() {
            subject.mix.write_inputs(model, inputs)?;
        }
        Ok(subject)
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    fn unit_count(&self) -> u32 {
        self.units.len() as u32
    }

    /// Times the steps of all models.
    pub(crate) fn timed(&mut self) -> Result<Mix> {
        let unit_count = self.unit_count();
        let counts = TIMED_UNITS.into_iter().filter(|&count| count < unit_count);
        let counts: Vec<u32> = counts.chain([unit_count]).collect();
        let mut models = Vec::new();
        for model in 0..self.names.len() {
            let mut timed = Vec::new();
            for &count in &counts {
                progress::show(format!(
                    "timing {} on {count} of {unit_count} units",
                    self.names[model]
                ));
                let mask = UnitMask::range(0, count);
                let steps = self.mix.time_steps_us(model, &self.device_units(mask))?;
                let whole = 0..steps.len();
                let segment = Segment { model, steps: whole, units: mask };
                let whole = self.time_us(&MixSchedule { segments: vec![segment] })?;
                let steps = steps.into_iter().map(Span::from_us).collect();
                timed.push(StepTimes { units: count, steps, whole: Span::from_us(whole) });
            }
            models.push(MixModel::new(&self.names[model], &timed, unit_count)?);
        }
        Ok(Mix::new(models, unit_count)?)
    }

    /// The median time of a schedule, in microseconds.
    pub(crate) fn time_us(&mut self, schedule: &MixSchedule) -> Result<f64> {
        let compiled = self.compile(schedule)?;
        self.median_us(&compiled)
    }

    pub(crate) fn median_us(&self, compiled: &CompiledMix) -> Result<f64> {
        // The first warms up.
        self.mix.run_us(compiled)?;
        let times =
            (0..RUNS).map(|_| Ok(self.mix.run_us(compiled)?)).collect::<Result<Vec<f64>>>()?;
        Ok(median(&times))
    }

    pub(crate) fn compile(&mut self, schedule: &MixSchedule) -> Result<CompiledMix> {
        let waits = schedule.dependencies();
        let segments = schedule.segments.iter().zip(waits);
        let segments: Vec<CudaSegment> = segments
            .map(|(segment, waits)| CudaSegment {
                model: segment.model,
                steps: segment.steps.clone(),
                units: self.device_units(segment.units),
                waits,
            })
            .collect();
        Ok(self.mix.compile(&segments)?)
    }

    /// All models at once on all units, each in a stream of its own, as the hardware likes.
    pub(crate) fn streams(&mut self) -> Result<CompiledMix> {
        let all = self.device_units(UnitMask::range(0, self.unit_count()));
        let segment = |model: usize| CudaSegment {
            model,
            steps: 0..self.mix.report(model).steps.len(),
            units: all.clone(),
            waits: Vec::new(),
        };
        let segments: Vec<CudaSegment> = (0..self.names.len()).map(segment).collect();
        Ok(self.mix.compile(&segments)?)
    }

    /// Runs a schedule once, and compares its results with those of each model alone.
    pub(crate) fn check(&self, compiled: &CompiledMix) -> Result<()> {
        let mut expected = Vec::new();
        for (model, inputs) in self.inputs.iter().enumerate() {
            expected.push(self.mix.run_alone(model, inputs)?);
        }
        self.mix.run_us(compiled)?;
        for (model, expected) in expected.iter().enumerate() {
            let outputs = self.mix.read_outputs(model)?;
            for (expected, actual) in expected.iter().zip(&outputs) {
                let error = difference(expected, actual)?;
                ensure!(
                    error <= TOLERANCE,
                    "{} is off by {error:.1e} in the mix",
                    self.names[model]
                );
            }
        }
        Ok(())
    }

    fn device_units(&self, mask: UnitMask) -> UnitSet {
        mask.iter().flat_map(|unit| self.units[unit as usize].iter()).collect()
    }
}

/// The device's units, with what is left over of the SMs, which cannot run every kernel by itself, as part of the last.
fn units(device: &CudaDevice) -> Vec<UnitSet> {
    let all = device.layout().all();
    let mut units: Vec<Vec<usize>> = all.iter().map(|unit| vec![unit]).collect();
    if units.len() > 1 {
        let last = units.pop().unwrap_or_default();
        if let Some(before) = units.last_mut() {
            before.extend(last);
        }
    }
    units.into_iter().map(|units| units.into_iter().collect()).collect()
}
