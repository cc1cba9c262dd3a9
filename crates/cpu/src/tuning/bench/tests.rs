use super::*;
use crate::conv::ConvProblem;
use crate::tuning::{FusedOperator, Product};
use crate::{Activation, CpuDevice};

const EFFORT: Duration = Duration::from_millis(1);

const CONVOLUTION: ConvProblem = ConvProblem {
    batch: 1,
    height: 11,
    width: 9,
    channels_in: 20,
    channels_out: 40,
    kernel: [3, 3],
    strides: [1, 1],
    dilations: [1, 1],
    pads_begin: [1, 1],
    pads_end: [1, 1],
    group: 1,
};

fn operators() -> [FusedOperator; 3] {
    let products = [
        Product::Conv(CONVOLUTION),
        Product::Conv(ConvProblem { channels_out: 20, group: 20, ..CONVOLUTION }),
        Product::Linear { rows: 13, depth: 700, columns: 50 },
    ];
    products.map(|product| FusedOperator {
        product,
        has_bias: true,
        has_residual: true,
        activation: Activation::Gelu,
    })
}

fn bench() -> CpuBench {
    bench_of(1)
}

fn bench_of(cores: usize) -> CpuBench {
    let first = CpuDevice::new().unwrap().units().iter().take(cores).collect();
    CpuBench::new(&first, Isa::detect(), Priority::Normal).unwrap()
}

#[test]
fn every_candidate_is_right_and_takes_time() {
    for cores in 1..=CpuDevice::new().unwrap().units().len().min(2) {
        try_all(bench_of(cores), cores);
    }
}

fn try_all(mut bench: CpuBench, cores: usize) {
    for operator in operators() {
        let operator = CpuOperator::new(operator, 1, Isa::detect(), cores).unwrap();
        for (index, description) in operator.candidates().iter().enumerate() {
            let trial = bench.try_candidate(&operator, index, EFFORT).unwrap();
            let Trial::Measured(measured) = trial else { panic!("{description:?}: {trial:?}") };
            assert!(measured.time > Duration::ZERO && measured.time < Duration::from_secs(1));
            assert!(measured.spread >= 0.0 && measured.interference > 0.0);
        }
    }
}

/// What becomes of a kernel whose result is changed after it was computed.
fn tried(change: impl Fn(&mut [f32]) + Sync) -> Trial {
    let bench = bench();
    let operator = operators()[0];
    let candidate = operator.candidates(Isa::detect(), 1)[0];
    let mut subject = Subject::new(&operator).unwrap();
    let weights = subject.pack(&candidate, Isa::detect()).unwrap();
    let kernel = subject.prepare(&candidate, &weights).unwrap();
    bench.try_kernel(&mut subject, &[], EFFORT, |worker, input, residual, output| {
        // SAFETY: the bench has one worker, and the output is no one else's meanwhile.
        unsafe {
            kernel.run(worker, input, residual, output);
            change(output.slice_mut(0, output.len()));
        }
    })
}

#[test]
fn wrong_results_disqualify_a_kernel() {
    assert!(matches!(tried(|_| {}), Trial::Measured(_)));
    let is_wrong = |trial: Trial| matches!(trial, Trial::Wrong { error } if error > 1e-4);
    assert!(is_wrong(tried(|result| result.iter_mut().for_each(|value| *value *= 1.001))));
    assert!(is_wrong(tried(|result| result.rotate_right(1))));
    // The last channel of the last pixel alone.
    assert!(is_wrong(tried(|result| result[result.len() - 1] += 0.5)));
    let missing = tried(|result| result[result.len() / 2] = f32::NAN);
    assert!(matches!(missing, Trial::Wrong { error } if error.is_nan()), "{missing:?}");
}

#[test]
fn elements_that_a_kernel_leaves_out_are_not_taken_for_results_of_the_one_before() {
    let bench = bench();
    let operator = operators()[0];
    let mut subject = Subject::new(&operator).unwrap();
    let candidate = operator.candidates(Isa::detect(), 1)[0];
    let weights = subject.pack(&candidate, Isa::detect()).unwrap();
    let kernel = subject.prepare(&candidate, &weights).unwrap();
    let trial = bench.try_kernel(&mut subject, &[], EFFORT, |worker, input, residual, output| {
        // SAFETY: the bench has one worker, and the output is no one else's meanwhile.
        unsafe { kernel.run(worker, input, residual, output) }
    });
    assert!(matches!(trial, Trial::Measured(_)));
    let idle = bench.try_kernel(&mut subject, &[], EFFORT, |_, _, _, _| {});
    assert!(matches!(idle, Trial::Wrong { error } if error.is_nan()), "{idle:?}");
}

#[test]
fn a_kernel_that_panics_fails_and_the_bench_lives_on() {
    let bench = bench();
    let mut subject = Subject::new(&operators()[2]).unwrap();
    let trial = bench.try_kernel(&mut subject, &[], EFFORT, |_, _, _, _| panic!("out of tiles"));
    assert!(matches!(&trial, Trial::Failed(reason) if reason.contains("out of tiles")));
    try_all(bench, 1);
}

#[test]
fn what_is_not_for_the_bench_is_refused() {
    let mut bench = bench();
    let operator = CpuOperator::new(operators()[0], 1, Isa::detect(), 2).unwrap();
    let trial = bench.try_candidate(&operator, 0, EFFORT).unwrap();
    assert!(matches!(&trial, Trial::Failed(reason) if reason.contains("2 cores")), "{trial:?}");
    let operator = CpuOperator::new(operators()[0], 1, Isa::detect(), 1).unwrap();
    let trial = bench.try_candidate(&operator, usize::MAX, EFFORT).unwrap();
    assert!(matches!(trial, Trial::Failed(_)));
}
