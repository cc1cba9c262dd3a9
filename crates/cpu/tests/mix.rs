//! Mixes of models by any schedule give what each model gives alone.

use proptest::prelude::*;
use weft_cpu::CpuDevice;
use weft_device::{Device, MIX_CHUNKS, Mix, MixChunks, MixMember, MixSegment, UnitSet};
use weft_ir::Value;
use weft_zoo::{ZooOptions, sample_inputs};

/// Models, the batch of each, and what they take.
struct Mixed {
    device: CpuDevice,
    models: Vec<MixMember>,
    inputs: Vec<Vec<Value>>,
    cores: UnitSet,
}

impl Mixed {
    fn new(names: &[(&str, usize)]) -> Self {
        let device = CpuDevice::new().unwrap();
        let (mut models, mut inputs) = (Vec::new(), Vec::new());
        for (place, &(name, batch)) in names.iter().enumerate() {
            let options = ZooOptions { seed: place as u64, ..ZooOptions::default() };
            let entry = weft_zoo::entry(name).unwrap();
            let given = sample_inputs(entry, &options, batch, 8).unwrap();
            let shapes = given.iter().map(|input| input.shape().to_vec()).collect();
            let model = device.load(name, &weft_zoo::build(name, &options).unwrap()).unwrap();
            models.push(MixMember { model, shapes });
            inputs.push(given.into_iter().map(Value::Tensor).collect());
        }
        let cores = device.units().iter().take(4).collect();
        Self { device, models, inputs, cores }
    }

    fn unwritten(&self) -> Box<dyn Mix> {
        self.device.mix(&self.models, &self.cores).unwrap().unwrap()
    }

    fn mix(&self) -> Box<dyn Mix> {
        let mut mix = self.unwritten();
        for (model, inputs) in self.inputs.iter().enumerate() {
            mix.write_inputs(model, inputs).unwrap();
        }
        mix
    }

    /// What each model says on a partition of all cores.
    fn alone(&self) -> Vec<Vec<Value>> {
        let partition = self.device.partition(&self.cores).unwrap();
        let models = self.models.iter().zip(&self.inputs);
        models
            .map(|(MixMember { model, shapes }, inputs)| {
                partition.prepare(&**model, shapes).unwrap().run(inputs).unwrap()
            })
            .collect()
    }

    /// Segments by what was drawn: which model is next, how many of its steps, on which cores.
    fn segments(&self, mix: &dyn Mix, drawn: &[(usize, usize, usize)]) -> Vec<MixSegment> {
        let mut done = vec![0; self.models.len()];
        let mut segments = Vec::new();
        for &(model, steps, cores) in drawn.iter().cycle() {
            let left: Vec<usize> =
                (0..done.len()).filter(|&model| done[model] < mix.step_count(model)).collect();
            if left.is_empty() {
                break;
            }
            let model = left[model % left.len()];
            let end = (done[model] + 1 + steps).min(mix.step_count(model));
            let drawn = 1 + cores % ((1 << self.cores.len()) - 1);
            let numbered = self.cores.iter().enumerate();
            let cores =
                numbered.filter(|(place, _)| drawn & (1 << place) != 0).map(|(_, core)| core);
            segments.push(MixSegment {
                model,
                steps: done[model]..end,
                chunks: None,
                units: cores.collect(),
                is_filler: false,
                waits: Vec::new(),
            });
            done[model] = end;
        }
        segments
    }
}

/// The same segments, in which models are in so many chunks until a share of their steps, on one core each or all on the same.
fn in_chunks(
    mix: &dyn Mix,
    segments: Vec<MixSegment>,
    forms: &[Option<(usize, f64, bool)>],
) -> Vec<MixSegment> {
    let chunked = |segment: MixSegment| {
        let chunks = forms[segment.model].map(|(count, share, is_apart)| MixChunks {
            count,
            until: 1 + (share * (mix.step_count(segment.model) - 1) as f64).round() as usize,
            shares: match is_apart {
                true => segment.units.iter().map(|core| UnitSet::from_iter([core])).collect(),
                false => vec![segment.units.clone()],
            },
        });
        MixSegment { chunks, ..segment }
    };
    segments.into_iter().map(chunked).collect()
}

fn check(mixed: &Mixed, mix: &dyn Mix, alone: &[Vec<Value>]) -> Result<(), TestCaseError> {
    for (model, expected) in alone.iter().enumerate() {
        prop_assert_eq!(
            &mix.read_outputs(model).unwrap(),
            expected,
            "{}",
            mixed.models[model].model.name()
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_schedule_gives_the_bits_of_each_model_alone(
        drawn in prop::collection::vec((0usize..3, 0usize..9, 0usize..99), 1..40),
    ) {
        let mixed = Mixed::new(&[("tiny_resnet", 1), ("tiny_bert", 2), ("tiny_mobilenet_v2", 1)]);
        let alone = mixed.alone();
        let mut mix = mixed.mix();
        let schedule = mix.compile(&mixed.segments(&*mix, &drawn)).unwrap();
        for _ in 0..5 {
            mix.run_us(&schedule).unwrap();
            check(&mixed, &*mix, &alone)?;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn chunks_give_the_bits_of_the_batch_at_once(
        drawn in prop::collection::vec((0usize..3, 0usize..9, 0usize..99), 1..20),
        shares in prop::collection::vec(0.0f64..=1.0, 3), is_apart in any::<bool>(),
        counts in prop::collection::vec(prop::sample::select(&MIX_CHUNKS[..]), 3),
    ) {
        let mixed = Mixed::new(&[("tiny_resnet", 8), ("tiny_unet", 16), ("tiny_mobilenet_v2", 8)]);
        prop_assume!(mixed.cores.len() > 1);
        let alone = mixed.alone();
        let mut mix = mixed.mix();
        // There are as many chunks as cores at most.
        let most = MIX_CHUNKS.into_iter().rfind(|&count| count <= mixed.cores.len()).unwrap();
        let count = |model: usize| counts[model].min(most);
        let form = |model: usize| Some((count(model), shares[model], is_apart));
        let forms = [form(0), form(1), if is_apart { form(2) } else { None }];
        let segments = in_chunks(&*mix, mixed.segments(&*mix, &drawn), &forms);
        let schedule = mix.compile(&segments).unwrap();
        for _ in 0..3 {
            mix.run_us(&schedule).unwrap();
            check(&mixed, &*mix, &alone)?;
        }
    }
}

#[test]
fn every_model_that_can_be_chunked_has_the_same_bits_wherever_chunks_end() {
    let mut unchunked = Vec::new();
    for name in weft_zoo::names().iter().filter(|name| name.starts_with("tiny")) {
        let mixed = Mixed::new(&[(name, 4)]);
        if mixed.cores.len() < 2 {
            return;
        }
        let mut mix = mixed.mix();
        assert!(
            !mix.can_chunk(0, 3) && !mix.can_chunk(0, 4),
            "{name}: a chunk has two entries or more"
        );
        if !mix.can_chunk(0, 2) {
            unchunked.push(*name);
            continue;
        }
        let alone = mixed.alone();
        let whole = &mixed.segments(&*mix, &[(0, 9999, 98)])[0];
        for (step, joining_us) in mix.joining_us(0).into_iter().enumerate().skip(1) {
            let shares = whole.units.iter().map(|core| UnitSet::from_iter([core])).collect();
            let chunks = Some(MixChunks { count: 2, until: step, shares });
            let segment = MixSegment { chunks, ..whole.clone() };
            if joining_us.is_infinite() {
                let why = mix.compile(&[segment]).err().expect(name).to_string();
                assert!(why.contains(&format!("not put together before step {step}")), "{why}");
                continue;
            }
            let schedule = mix.compile(&[segment]).unwrap();
            mix.run_us(&schedule).unwrap();
            check(&mixed, &*mix, &alone).unwrap();
        }
    }
    // The batch is not their first axis, or what they do is not known to leave entries apart.
    assert_eq!(unchunked, ["tiny_vit", "tiny_gpt2", "tiny_lstm", "tiny_gru"]);
}

#[test]
fn a_mix_takes_an_arena_inputs_and_outputs_for_each_model_and_arenas_for_chunks() {
    let mixed = Mixed::new(&[("tiny_resnet", 1), ("tiny_mobilenet_v2", 4)]);
    let partition = mixed.device.partition(&mixed.cores).unwrap();
    let size_bytes = |values: &[Value]| -> usize {
        values.iter().map(|value| value.tensor().unwrap().size_bytes()).sum()
    };
    let models = mixed.models.iter().zip(&mixed.inputs).zip(mixed.alone());
    let expected: usize = models
        .map(|((MixMember { model, shapes }, inputs), outputs)| {
            let arena_bytes = partition.prepare(&**model, shapes).unwrap().report().arena_bytes;
            assert!(arena_bytes > 0);
            arena_bytes + size_bytes(inputs) + size_bytes(&outputs)
        })
        .sum();
    assert_eq!(mixed.unwritten().memory_bytes(), expected);
    let mut mix = mixed.mix();
    let at_once = mix.at_once().unwrap();
    mix.run_us(&at_once).unwrap();
    assert_eq!(mix.memory_bytes(), expected);
    if mixed.cores.len() < 2 {
        return;
    }
    // Each of two chunks takes about half of what the batch takes, and no more of it when they are timed again.
    let MixMember { model, shapes } = &mixed.models[1];
    let whole_bytes = partition.prepare(&**model, shapes).unwrap().report().arena_bytes;
    for _ in 0..2 {
        mix.time_steps_us(1, 2, &mixed.cores).unwrap();
        let chunks_bytes = mix.memory_bytes() - expected;
        assert!((whole_bytes / 2..2 * whole_bytes).contains(&chunks_bytes), "{chunks_bytes}");
    }
}

#[test]
fn two_models_that_change_cores_at_every_step_disturb_nothing() {
    let mixed = Mixed::new(&[("tiny_resnet", 1), ("tiny_resnet", 1)]);
    let alone = mixed.alone();
    let mut mix = mixed.mix();
    let drawn: Vec<(usize, usize, usize)> = (0..6).map(|at| (at % 2, 0, at / 2 + at % 2)).collect();
    let schedule = mix.compile(&mixed.segments(&*mix, &drawn)).unwrap();
    for _ in 0..300 {
        mix.run_us(&schedule).unwrap();
        check(&mixed, &*mix, &alone).unwrap();
    }
}

#[test]
fn all_at_once_gives_the_bits_of_each_model_alone() {
    let mixed = Mixed::new(&[("tiny_resnet", 2), ("tiny_bert", 1), ("tiny_mobilenet_v2", 1)]);
    let alone = mixed.alone();
    let mut mix = mixed.mix();
    let at_once = mix.at_once().unwrap();
    for _ in 0..20 {
        mix.run_us(&at_once).unwrap();
        check(&mixed, &*mix, &alone).unwrap();
    }
    for (model, alone) in alone.iter().enumerate() {
        assert_eq!(&mix.run_alone(model, &mixed.inputs[model]).unwrap(), alone);
    }
}

#[test]
fn steps_of_several_chunks_are_one_and_other_batches_are_read() {
    // A batch whose activations exceed the cache.
    let mixed = Mixed::new(&[("tiny_unet", 32)]);
    let alone = mixed.alone();
    let mut mix = mixed.mix();
    let executable = mixed.device.partition(&mixed.cores).unwrap();
    let steps = executable.prepare(&*mixed.models[0].model, &mixed.models[0].shapes).unwrap();
    assert!(mix.step_count(0) < steps.report().steps.len());
    let schedule = mix.compile(&mixed.segments(&*mix, &[(0, 0, 0), (0, 0, 1)])).unwrap();
    mix.run_us(&schedule).unwrap();
    check(&mixed, &*mix, &alone).unwrap();
}

#[test]
fn every_step_is_timed_on_any_cores() {
    let mixed = Mixed::new(&[("tiny_resnet", 1)]);
    let mut mix = mixed.mix();
    for count in 1..=mixed.cores.len() {
        let cores: UnitSet = mixed.cores.iter().take(count).collect();
        let times = mix.time_steps_us(0, 1, &cores).unwrap();
        assert_eq!(times.len(), mix.step_count(0));
        assert!(times.iter().all(|&us| us > 0.0 && us < 1e6), "{times:?}");
    }
    assert!(mix.time_steps_us(0, 2, &mixed.cores).unwrap_err().to_string().contains("2 chunks"));
    if mixed.cores.len() < 2 {
        return;
    }
    let mut mix = Mixed::new(&[("tiny_resnet", 4)]).mix();
    let times = mix.time_steps_us(0, 2, &mixed.cores).unwrap();
    assert_eq!(times.len(), mix.step_count(0));
    assert!(times.iter().all(|&us| us > 0.0 && us < 1e6), "{times:?}");
}

#[test]
fn what_is_not_there_is_said() {
    let mixed = Mixed::new(&[("tiny_resnet", 1)]);
    let mut mix = mixed.unwritten();
    let whole = mixed.segments(&*mix, &[(0, 9999, 0)]);
    let schedule = mix.compile(&whole).unwrap();
    assert!(mix.run_us(&schedule).unwrap_err().to_string().contains("inputs were not written"));
    assert!(mix.read_outputs(0).unwrap_err().to_string().contains("has not run"));
    assert!(mix.write_inputs(0, &[]).is_err());
    let mut other = mixed.mix();
    assert!(other.run_us(&schedule).unwrap_err().to_string().contains("another mix"));
    let nowhere = [MixSegment { units: UnitSet::first(5000), ..whole[0].clone() }];
    assert!(mix.compile(&nowhere).err().unwrap().to_string().contains("does not exist"));
    assert!(mixed.device.mix(&mixed.models, &UnitSet::default()).unwrap().is_err());
}
