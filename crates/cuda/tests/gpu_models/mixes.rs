//! Mixes: steps of several models on partitions that change, in chunks of their batches, beside fillers, and in launches that models
//! share.

use std::ops::Range;

use weft_cuda::{Choice, CudaDevice, Precision};
use weft_device::{CompiledMix, Device, Mix, MixChunks, MixMember, MixSegment, MixStep, UnitSet};
use weft_ir::Value;
use weft_zoo::{ZooOptions, sample_inputs};

use super::subject::{Subject, gpu};

const MODELS: [&str; 5] =
    ["tiny_resnet", "tiny_mobilenet_v3", "tiny_densenet", "tiny_bert", "tiny_vit"];

/// Images and sequences of a batch.
const BATCH: usize = 8;

struct Mixed {
    mix: Box<dyn Mix>,
    subjects: Vec<Subject>,
    units: Vec<usize>,
}

impl Mixed {
    fn new(device: &CudaDevice) -> Self {
        Self::on(device, &device.layout().all(), &MODELS)
    }

    fn on(device: &CudaDevice, units: &UnitSet, models: &[&str]) -> Self {
        let entries = models.iter().map(|name| weft_zoo::entry(name).unwrap());
        let subjects: Vec<Subject> =
            entries.map(|entry| Subject::of_batch(entry, 3, BATCH)).collect();
        let load = |subject: &Subject| {
            let model = device.load_with_precision(subject.name, &subject.graph, Precision::F16);
            MixMember { model, shapes: subject.shapes() }
        };
        let models: Vec<MixMember> = subjects.iter().map(load).collect();
        let mut mix = device.mix(&models, units).unwrap().unwrap();
        for (model, subject) in subjects.iter().enumerate() {
            mix.write_inputs(model, &subject.inputs).unwrap();
        }
        Self { mix, subjects, units: units.iter().collect() }
    }

    /// Inputs from a seed; the subjects' own are from 3.
    fn write_samples(&mut self, seed: u64) {
        let options = ZooOptions { seed, ..ZooOptions::default() };
        for (model, subject) in self.subjects.iter().enumerate() {
            let entry = weft_zoo::entry(subject.name).unwrap();
            let inputs = sample_inputs(entry, &options, BATCH, 8).unwrap();
            let inputs: Vec<Value> = inputs.into_iter().map(Value::Tensor).collect();
            self.mix.write_inputs(model, &inputs).unwrap();
        }
    }

    fn units(&self, range: Range<usize>) -> UnitSet {
        self.units[range].iter().copied().collect()
    }

    fn step_count(&self, model: usize) -> usize {
        self.mix.step_count(model)
    }

    /// All steps of a model on some units, at once.
    fn whole(&self, model: usize, units: Range<usize>) -> MixSegment {
        MixSegment {
            model,
            steps: 0..self.step_count(model),
            chunks: None,
            units: self.units(units),
            is_filler: false,
            waits: Vec::new(),
        }
    }

    fn run(&mut self, segments: &[MixSegment], what: &str) -> Vec<Vec<Value>> {
        let compiled = self.mix.compile(segments).unwrap_or_else(|error| panic!("{what}: {error}"));
        self.run_compiled(&compiled)
    }

    fn run_in_lockstep(&mut self, sets: &[Vec<MixStep>], what: &str) -> Vec<Vec<Value>> {
        let compiled = self.mix.compile_shared(sets);
        self.run_compiled(&compiled.unwrap_or_else(|error| panic!("{what}: {error}")))
    }

    fn run_compiled(&mut self, compiled: &CompiledMix) -> Vec<Vec<Value>> {
        // Twice: what a run leaves behind must not matter to the next.
        for _ in 0..2 {
            self.mix.run_us(compiled).unwrap();
        }
        (0..self.subjects.len()).map(|model| self.mix.read_outputs(model).unwrap()).collect()
    }

    fn check(&self, outputs: &[Vec<Value>], what: &str) {
        for (subject, outputs) in self.subjects.iter().zip(outputs) {
            subject.check(outputs, Precision::F16, what);
        }
    }
}

#[test]
fn chunks_compute_what_the_batch_computes_wherever_they_end() {
    let Some(gpu) = gpu(Choice::Estimated) else { return };
    let mut mixed = Mixed::new(&gpu.device);
    let at_once: Vec<MixSegment> =
        (0..MODELS.len()).map(|model| mixed.whole(model, 0..4)).collect();
    let in_turns = |segments: &mut Vec<MixSegment>| {
        let places = segments.iter_mut().enumerate().skip(1);
        places.for_each(|(place, segment)| segment.waits.push(place - 1));
    };
    let mut all = at_once.clone();
    in_turns(&mut all);
    let expected = mixed.run(&all, "at once");
    mixed.check(&expected, "at once");
    for (count, shares) in [(2, vec![0..1, 1..2]), (2, vec![0..2, 2..4]), (4, vec![0..1, 1..2])] {
        for part in [1, 2, 3, 4] {
            let shares: Vec<UnitSet> =
                shares.iter().map(|share| mixed.units(share.clone())).collect();
            let chunked = |segment: &MixSegment| {
                let until = segment.steps.end * part / 4;
                let chunks = Some(MixChunks { count, until, shares: shares.clone() });
                MixSegment { chunks, ..segment.clone() }
            };
            let mut segments: Vec<MixSegment> = at_once.iter().map(chunked).collect();
            in_turns(&mut segments);
            let what = format!("{count} chunks on {} shares until {part} quarters", shares.len());
            let outputs = mixed.run(&segments, &what);
            mixed.check(&outputs, &what);
            for ((name, expected), outputs) in MODELS.iter().zip(&expected).zip(&outputs) {
                assert_eq!(expected, outputs, "{name}, {what}: not the same bits");
            }
        }
    }
}

#[test]
fn segments_go_on_from_each_other_on_any_units_and_beside_fillers() {
    let Some(gpu) = gpu(Choice::Estimated) else { return };
    let mut mixed = Mixed::new(&gpu.device);
    for (filler, name) in MODELS.into_iter().enumerate() {
        let mut segments = vec![MixSegment { is_filler: true, ..mixed.whole(filler, 0..8) }];
        for model in (0..MODELS.len()).filter(|&model| model != filler) {
            let steps = mixed.step_count(model);
            let halves = [(0..steps / 2, model..model + 1), (steps / 2..steps, 0..8)];
            for (steps, units) in halves {
                let waits = (1..segments.len()).collect();
                segments.push(MixSegment { steps, waits, ..mixed.whole(model, units) });
            }
        }
        let what = format!("{name} fills");
        let outputs = mixed.run(&segments, &what);
        mixed.check(&outputs, &what);
    }
}

/// Steps of models at the same place of each, with the kernels for so many units.
fn sets(mixed: &Mixed, units: usize) -> Vec<Vec<MixStep>> {
    let counts: Vec<usize> =
        (0..mixed.subjects.len()).map(|model| mixed.step_count(model)).collect();
    let longest = counts.iter().copied().max().unwrap_or(0);
    let of_place = |step: usize| {
        let models = (0..counts.len()).filter(|&model| step < counts[model]);
        models.map(|model| MixStep { model, step, units }).collect()
    };
    (0..longest).map(of_place).collect()
}

#[test]
fn models_that_share_launches_have_the_bits_of_each_by_itself() {
    let Some(gpu) = gpu(Choice::Estimated) else { return };
    let mixes: [&[&str]; 3] = [
        &["tiny_resnet", "tiny_mobilenet_v3"],
        &["tiny_bert", "tiny_densenet", "tiny_vit"],
        &["tiny_resnet", "tiny_resnet"],
    ];
    for models in mixes {
        for sms in [Some(16), Some(64), None] {
            let mut mixed = Mixed::on(&gpu.device, &gpu.units(sms), models);
            let count = mixed.mix.units().len();
            for units in [1, count.div_ceil(2), count] {
                let what = format!("{models:?} on {sms:?} SMs with kernels for {units} units");
                let of: UnitSet =
                    mixed.mix.units()[..units].iter().flat_map(UnitSet::iter).collect();
                for model in 0..models.len() {
                    mixed.mix.time_steps_us(model, 1, &of).unwrap();
                }
                let together = sets(&mixed, units);
                let several: Vec<&Vec<MixStep>> =
                    together.iter().filter(|set| set.len() > 1).collect();
                let shared = several.iter().filter(|set| mixed.mix.can_share(set)).count();
                eprintln!("{what}: {shared} of {} sets share their launches", several.len());
                assert!(shared > 0, "{what}: nothing is shared");
                let apart: Vec<Vec<MixStep>> =
                    together.iter().flatten().map(|step| vec![*step]).collect();
                mixed.write_samples(3);
                let checked = mixed.run_in_lockstep(&apart, &what);
                mixed.check(&checked, &what);
                // Other inputs, so that nothing of the last run can be taken for a result.
                mixed.write_samples(4);
                let outputs = mixed.run_in_lockstep(&together, &what);
                let expected = mixed.run_in_lockstep(&apart, &what);
                assert_ne!(checked, expected, "{what}: inputs make no difference");
                for ((name, expected), outputs) in models.iter().zip(&expected).zip(&outputs) {
                    assert_eq!(expected, outputs, "{name}, {what}: not the same bits");
                }
            }
        }
    }
}

#[test]
fn a_lockstep_that_is_none_is_refused() {
    let Some(gpu) = gpu(Choice::Estimated) else { return };
    let mut mixed = Mixed::on(&gpu.device, &gpu.units(Some(16)), &["tiny_resnet", "tiny_resnet"]);
    let whole = sets(&mixed, 1);
    let error = mixed.mix.compile_shared(&whole[1..]).err().unwrap().to_string();
    assert!(error.contains("step 1 of model 0"), "{error}");
    let error = mixed.mix.compile_shared(&whole[..1]).err().unwrap().to_string();
    assert!(error.contains("missing"), "{error}");
    // Nothing was timed, so that nothing is known of kernels.
    assert!(!mixed.mix.can_share(&whole[0]));
}

#[test]
fn what_cannot_be_is_refused() {
    let Some(gpu) = gpu(Choice::Estimated) else { return };
    let mut mixed = Mixed::new(&gpu.device);
    assert!(mixed.mix.can_chunk(0, 2) && !mixed.mix.can_chunk(0, 3) && !mixed.mix.can_chunk(0, 16));
    // Ten numbers for each image, whose part of the output would begin between two words of sixteen bytes.
    assert!(!mixed.mix.can_chunk(0, 8));
    let shares = vec![mixed.units(0..1)];
    let chunks = Some(MixChunks { count: 3, until: 1, shares });
    let wrong = MixSegment { chunks, ..mixed.whole(0, 0..4) };
    let error = mixed.mix.compile(&[wrong]).err().unwrap().to_string();
    assert!(error.contains("3 chunks"), "{error}");
    let beyond = MixSegment { steps: 0..10_000, ..mixed.whole(0, 0..4) };
    let error = mixed.mix.compile(&[beyond]).err().unwrap().to_string();
    assert!(error.contains("no steps"), "{error}");
}
