//! Models beside each other: on several partitions at once, in turns on one, and with weights that are there once.

use std::sync::Arc;

use weft_cuda::{Choice, Precision};
use weft_device::{Device, Executable, UnitSet};

use super::subject::{Subject, gpu};

#[test]
fn two_partitions_run_at_once_from_two_threads() {
    let Some(gpu) = gpu(Choice::Estimated) else { return };
    let subjects = [Subject::named("tiny_resnet", 4), Subject::named("tiny_bert", 5)];
    let layout = gpu.device.layout();
    let first = layout.units_for_sms(24).unwrap();
    let second: UnitSet =
        layout.all().iter().filter(|unit| !first.as_slice().contains(unit)).collect();
    std::thread::scope(|scope| {
        for (subject, units) in subjects.iter().zip([&first, &second]) {
            let gpu = &gpu;
            scope.spawn(move || {
                let partition = gpu.device.partition(units).unwrap();
                let model = gpu.device.load(subject.name, &subject.graph).unwrap();
                let executable = partition.prepare(&*model, &subject.shapes()).unwrap();
                for run in 0..200 {
                    let outputs = executable.run(&subject.inputs).unwrap();
                    subject.check(&outputs, Precision::F16, &format!("run {run}"));
                }
            });
        }
    });
}

#[test]
fn models_take_turns_on_one_partition() {
    let Some(gpu) = gpu(Choice::Estimated) else { return };
    let subjects = [Subject::named("tiny_resnet", 8), Subject::named("tiny_unet", 9)];
    std::thread::scope(|scope| {
        for subject in &subjects {
            let gpu = &gpu;
            scope.spawn(move || {
                let executable = gpu.prepare(subject, Some(32), Precision::F16);
                for run in 0..100 {
                    let outputs = executable.run(&subject.inputs).unwrap();
                    subject.check(&outputs, Precision::F16, &format!("run {run}"));
                }
            });
        }
    });
}

#[test]
fn weights_are_shared_by_partitions_and_batch_sizes() {
    let Some(gpu) = gpu(Choice::Estimated) else { return };
    let subject = Subject::named("tiny_resnet", 1);
    let model = gpu.device.load_with_precision("shared", &subject.graph, Precision::F16);
    assert_eq!(model.weight_bytes(), 0);
    let prepare = |sms| {
        let partition = gpu.device.cuda_partition(&gpu.units(sms)).unwrap();
        partition.prepare_model(&model, &subject.shapes()).unwrap()
    };
    let first = prepare(None);
    let alone = model.weight_bytes();
    assert!(alone >= first.report().weight_bytes && alone > 0);
    let again = prepare(None);
    assert_eq!(model.weight_bytes(), alone);
    drop((first, again));
}

#[test]
fn partitions_over_the_same_units_share_their_context() {
    let Some(gpu) = gpu(Choice::Estimated) else { return };
    let units = gpu.units(Some(16));
    let first = gpu.device.cuda_partition(&units).unwrap();
    let second = gpu.device.cuda_partition(&units).unwrap();
    assert!(Arc::ptr_eq(first.context(), second.context()));
    assert!(gpu.device.partition(&UnitSet::default()).is_err());
    assert!(gpu.device.partition(&UnitSet::first(1000)).is_err());
}
