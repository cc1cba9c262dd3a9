//! Whether models give the same on the GPU as on the CPU, at every precision.

use anyhow::{Context, Result, ensure};
use serde_json::{Value as Json, json};
use weft_cpu::CpuDevice;
use weft_cuda::Precision;
use weft_device::Device;
use weft_ir::{Tensor, Value};

use super::finding::Finding;
use super::rig::{self, Rig};
use crate::describe;
use crate::progress;
use crate::table::Table;

/// How far outputs may differ, relative to their norm.
fn tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::F16 => 1e-2,
        Precision::Bf16 => 8e-2,
        Precision::Tf32 => 1e-3,
        Precision::F32 => 1e-4,
    }
}

/// What is compared.
pub(super) struct Selection {
    pub(super) models: Vec<String>,
    pub(super) batches: Vec<usize>,
    pub(super) precisions: Vec<Precision>,
    /// What inputs are drawn from.
    pub(super) seed: u64,
}

/// One model at one batch and precision: by how much its outputs differ, or why that cannot be said.
struct Case {
    model: String,
    batch: usize,
    precision: Precision,
    difference: Result<f64, String>,
}

impl Case {
    fn passes(&self) -> bool {
        self.difference.as_ref().is_ok_and(|&difference| difference <= tolerance(self.precision))
    }

    fn failure(&self) -> Option<String> {
        let place = || format!("{}, batch {}, {}", self.model, self.batch, self.precision);
        match &self.difference {
            _ if self.passes() => None,
            Ok(difference) => {
                let allowed = tolerance(self.precision);
                Some(format!("{}: differs by {difference:.1e}, more than {allowed:.0e}", place()))
            }
            Err(why) => Some(format!("{}: {why}", place())),
        }
    }

    fn json(&self) -> Json {
        json!({
            "model": self.model,
            "batch": self.batch,
            "precision": self.precision.name(),
            "difference": self.difference.as_ref().ok(),
            "tolerance": tolerance(self.precision),
            "error": self.difference.as_ref().err(),
            "passes": self.passes(),
        })
    }
}

/// Compares each model at each batch and precision.
pub(super) fn measure(rig: &Rig, selection: &Selection) -> Result<Finding> {
    let cpu = CpuDevice::new()?;
    let mut cases = Vec::new();
    for model in &selection.models {
        for &batch in &selection.batches {
            progress::show(format!("{model}, batch {batch}: on the CPU"));
            let expected = on_cpu(rig, &cpu, model, batch, selection.seed);
            for &precision in &selection.precisions {
                progress::show(format!("{model}, batch {batch}, {precision}: on the GPU"));
                let difference =
                    expected.as_ref().map_err(describe).and_then(|(inputs, expected)| {
                        let outputs = on_gpu(rig, model, precision, inputs);
                        outputs
                            .and_then(|outputs| difference(&outputs, expected))
                            .map_err(|error| describe(&error))
                    });
                let case = Case { model: model.clone(), batch, precision, difference };
                progress::note(match &case.difference {
                    Ok(difference) => {
                        format!("{model}, batch {batch}, {precision}: {difference:.1e}")
                    }
                    Err(why) => format!("{model}, batch {batch}, {precision}: {why}"),
                });
                cases.push(case);
            }
        }
    }
    Ok(Finding {
        about: format!(
            "norm of the difference from the CPU, relative to the norm of the outputs; inputs from seed {}, memory filled \
             with NaN before each run",
            selection.seed
        ),
        table: table(&cases, &selection.precisions).render(),
        notes: Vec::new(),
        json: json!({ "seed": selection.seed, "cases": cases.iter().map(Case::json).collect::<Vec<_>>() }),
        failures: cases.iter().filter_map(Case::failure).collect(),
    })
}

/// Inputs, and the outputs that the CPU gives for them.
fn on_cpu(
    rig: &Rig,
    cpu: &CpuDevice,
    name: &str,
    batch: usize,
    seed: u64,
) -> Result<(Vec<Value>, Vec<Value>)> {
    let inputs = rig::inputs(name, batch, seed)?;
    let model = cpu.load(name, &rig.graph(name)?)?;
    let executable = cpu.partition(&cpu.units())?.prepare(&*model, &rig::shapes(&inputs))?;
    let outputs = executable.run(&inputs)?;
    Ok((inputs, outputs))
}

/// The outputs that the GPU gives, with nothing left in its memory that could pass for a result.
fn on_gpu(rig: &Rig, name: &str, precision: Precision, inputs: &[Value]) -> Result<Vec<Value>> {
    let model = rig.device().load_with_precision(name, &rig.graph(name)?, precision);
    let executable = rig.whole()?.prepare_model(&model, &rig::shapes(inputs))?;
    executable.write_inputs(inputs)?;
    executable.poison()?;
    executable.launch()?;
    Ok(executable.read_outputs()?)
}

/// The largest relative difference of any output.
fn difference(outputs: &[Value], expected: &[Value]) -> Result<f64> {
    ensure!(
        outputs.len() == expected.len(),
        "{} outputs, the CPU gives {}",
        outputs.len(),
        expected.len()
    );
    let mut worst = 0f64;
    for (index, (output, expected)) in outputs.iter().zip(expected).enumerate() {
        let tensors = output.tensor().zip(expected.tensor());
        let (output, expected) = tensors.context("an output is no tensor")?;
        let difference =
            relative_norm(output, expected).with_context(|| format!("output {index}"))?;
        worst = worst.max(difference);
    }
    Ok(worst)
}

/// The norm of the difference, relative to that of what is expected.
fn relative_norm(output: &Tensor, expected: &Tensor) -> Result<f64> {
    ensure!(
        output.shape() == expected.shape(),
        "shape {:?}, the CPU gives {:?}",
        output.shape(),
        expected.shape()
    );
    let (output, expected) = (output.to_f64s()?, expected.to_f64s()?);
    let undefined = output.iter().filter(|element| !element.is_finite()).count();
    ensure!(undefined == 0, "{undefined} of {} elements are not finite", output.len());
    let norm = |elements: &mut dyn Iterator<Item = f64>| {
        elements.map(|element| element * element).sum::<f64>().sqrt()
    };
    let apart = norm(&mut output.iter().zip(&expected).map(|(a, b)| a - b));
    let size = norm(&mut expected.iter().copied());
    ensure!(apart.is_finite() && size.is_finite(), "the CPU's output is not finite");
    Ok(if size > 0.0 { apart / size } else { apart })
}

fn table(cases: &[Case], precisions: &[Precision]) -> Table {
    let names = precisions.iter().map(|precision| precision.name());
    let mut table = Table::new(["model", "batch"].into_iter().chain(names).chain(["outcome"]));
    for row in cases.chunks(precisions.len().max(1)) {
        let differences = row.iter().map(|case| match &case.difference {
            Ok(difference) => format!("{difference:.1e}"),
            Err(_) => "failed".to_string(),
        });
        let outcome = if row.iter().all(Case::passes) { "PASS" } else { "FAIL" };
        let place = [row[0].model.clone(), row[0].batch.to_string()];
        table.row(place.into_iter().chain(differences).chain([outcome.to_string()]));
    }
    let limits = precisions.iter().map(|&precision| format!("{:.0e}", tolerance(precision)));
    table.row(
        ["at most".to_string(), String::new()].into_iter().chain(limits).chain([String::new()]),
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(elements: &[f32]) -> Value {
        Value::Tensor(Tensor::vector(elements.to_vec()))
    }

    fn case(precision: Precision, difference: Result<f64, &str>) -> Case {
        let difference = difference.map_err(str::to_string);
        Case { model: "tiny_resnet".into(), batch: 1, precision, difference }
    }

    #[test]
    fn the_worst_output_counts_relative_to_its_own_norm() {
        let expected = [value(&[3.0, 4.0]), value(&[3e-6, 4e-6])];
        let outputs = [value(&[3.0, 4.0]), value(&[3e-6, 5e-6])];
        let apart = difference(&outputs, &expected).unwrap();
        assert!((apart - 0.2).abs() < 1e-6, "{apart}");
        assert_eq!(difference(&expected, &expected).unwrap(), 0.0);
        assert_eq!(difference(&[value(&[0.5])], &[value(&[0.0])]).unwrap(), 0.5);
    }

    #[test]
    fn what_was_not_written_or_has_another_shape_is_no_result() {
        for output in [vec![f32::NAN, 1.0], vec![f32::INFINITY, 1.0], vec![1.0], vec![]] {
            assert!(difference(&[value(&output)], &[value(&[1.0, 1.0])]).is_err(), "{output:?}");
        }
        assert!(difference(&[], &[value(&[1.0])]).is_err());
    }

    #[test]
    fn a_case_passes_within_the_tolerance_of_its_precision() {
        for (precision, allowed) in [
            (Precision::F16, 1e-2),
            (Precision::Bf16, 8e-2),
            (Precision::Tf32, 1e-3),
            (Precision::F32, 1e-4),
        ] {
            assert!(case(precision, Ok(allowed)).failure().is_none());
            assert!(case(precision, Ok(allowed * 1.01)).failure().is_some());
        }
        let failed = case(Precision::F32, Err("lost")).failure();
        assert_eq!(failed.unwrap(), "tiny_resnet, batch 1, f32: lost");
    }

    #[test]
    fn a_row_fails_where_one_precision_does() {
        let cases = [case(Precision::F16, Ok(2e-3)), case(Precision::F32, Ok(2e-3))];
        assert_eq!(
            table(&cases, &[Precision::F16, Precision::F32]).render(),
            "\
model        batch     f16     f32  outcome
-----------  -----  ------  ------  -------
tiny_resnet      1  2.0e-3  2.0e-3  FAIL
at most               1e-2    1e-4"
        );
    }
}
