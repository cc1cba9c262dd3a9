//! What the GPU computes is what the reference computes.

use weft_cuda::{Choice, Precision};
use weft_device::{Buckets, Device, Executable, bucket_sizes};
use weft_ir::{Dimensions, Value};
use weft_zoo::{ZooOptions, sample_inputs};

use super::subject::{Subject, check_close, evaluate, gpu, tolerance};

const SHARES: [Option<u32>; 3] = [Some(8), Some(32), None];

#[test]
fn every_tiny_model_agrees_with_the_reference_at_every_share_and_precision() {
    let Some(gpu) = gpu(Choice::Estimated) else { return };
    let mut failures = Vec::new();
    for (seed, entry) in weft_zoo::entries().filter(|e| e.name.starts_with("tiny_")).enumerate() {
        let subject = Subject::new(entry, 100 + seed as u64);
        for precision in Precision::ALL {
            for sms in SHARES {
                let what = format!("{precision}, {sms:?} SMs");
                // All of them are tried, so that one run on a GPU tells as much as it can.
                let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    let executable = gpu.prepare(&subject, sms, precision);
                    for _ in 0..2 {
                        executable.poison().unwrap();
                        let outputs = executable.run(&subject.inputs).unwrap();
                        subject.check(&outputs, precision, &what);
                    }
                }));
                if outcome.is_err() {
                    failures.push(format!("{}, {what}", subject.name));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn measured_kernels_agree_with_the_reference() {
    let Some(gpu) = gpu(Choice::Measured) else { return };
    for name in ["tiny_resnet", "tiny_mobilenet_v3", "tiny_bert"] {
        let subject = Subject::named(name, 7);
        for sms in [Some(8), None] {
            let executable = gpu.prepare(&subject, sms, Precision::F16);
            executable.poison().unwrap();
            let outputs = executable.run(&subject.inputs).unwrap();
            subject.check(&outputs, Precision::F16, "measured");
        }
    }
}

#[test]
fn the_parts_of_a_run_do_what_a_run_does() {
    let Some(gpu) = gpu(Choice::Estimated) else { return };
    let subject = Subject::named("tiny_resnet", 3);
    let executable = gpu.prepare(&subject, Some(32), Precision::F16);
    executable.poison().unwrap();
    executable.write_inputs(&subject.inputs).unwrap();
    for _ in 0..10 {
        executable.launch().unwrap();
    }
    executable.wait().unwrap();
    assert!(executable.is_finished().unwrap());
    subject.check(&executable.read_outputs().unwrap(), Precision::F16, "in parts");

    let times = executable.time_steps(&subject.inputs).unwrap();
    assert_eq!(times.len(), executable.report().steps.len());
    assert!(times.iter().any(|time| !time.is_zero()));
    subject.check(&executable.run(&subject.inputs).unwrap(), Precision::F16, "after timing");
}

#[test]
fn any_batch_runs_on_buckets() {
    let Some(gpu) = gpu(Choice::Estimated) else { return };
    let entry = weft_zoo::entry("tiny_resnet").unwrap();
    let graph = weft_zoo::build(entry.name, &ZooOptions::default()).unwrap();
    let model = gpu.device.load(entry.name, &graph).unwrap();
    let partition = gpu.device.partition(&gpu.units(Some(32))).unwrap();
    let buckets =
        Buckets::prepare(&*partition, &*model, &bucket_sizes(4), &Dimensions::batch(1)).unwrap();
    for batch in [1, 3, 4, 7] {
        let options = ZooOptions { seed: batch as u64, ..Default::default() };
        let inputs = sample_inputs(entry, &options, batch, 1).unwrap();
        let inputs: Vec<Value> = inputs.into_iter().map(Value::Tensor).collect();
        let outputs = buckets.run(&inputs).unwrap();
        for (expected, actual) in evaluate(&graph, &inputs).iter().zip(&outputs) {
            check_close(expected, actual, tolerance(Precision::F16), &format!("batch {batch}"));
        }
    }
}
