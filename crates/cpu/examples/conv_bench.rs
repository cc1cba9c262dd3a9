//! Measures every algorithm on the convolutions of common networks, beside what is chosen without measuring.
//!
//! `cargo run --release -p weft-cpu --example conv_bench [layer] [algorithm]`: processor time of one thread, best of several runs,
//! as GFLOP/s of the direct computation.

use std::io::Write;

use weft_cpu::conv::{
    ConvAlgorithm, ConvCandidate, ConvError, ConvProblem, ConvWeights, PackedConv,
};
use weft_cpu::{Activation, Isa, SharedOutput, Worker};

/// Network, input channels, output channels, image size, kernel size, stride, groups.
type Layer = (&'static str, usize, usize, usize, usize, usize, usize);

const LAYERS: &[Layer] = &[
    ("resnet50", 3, 64, 224, 7, 2, 1),
    ("resnet50", 64, 64, 56, 1, 1, 1),
    ("resnet50", 64, 64, 56, 3, 1, 1),
    ("resnet50", 64, 256, 56, 1, 1, 1),
    ("resnet50", 256, 64, 56, 1, 1, 1),
    ("resnet50", 256, 128, 56, 1, 1, 1),
    ("resnet50", 128, 128, 56, 3, 2, 1),
    ("resnet50", 128, 512, 28, 1, 1, 1),
    ("resnet50", 256, 512, 56, 1, 2, 1),
    ("resnet50", 512, 128, 28, 1, 1, 1),
    ("resnet50", 128, 128, 28, 3, 1, 1),
    ("resnet50", 512, 256, 28, 1, 1, 1),
    ("resnet50", 256, 256, 28, 3, 2, 1),
    ("resnet50", 256, 1024, 14, 1, 1, 1),
    ("resnet50", 512, 1024, 28, 1, 2, 1),
    ("resnet50", 1024, 256, 14, 1, 1, 1),
    ("resnet50", 256, 256, 14, 3, 1, 1),
    ("resnet50", 1024, 512, 14, 1, 1, 1),
    ("resnet50", 512, 512, 14, 3, 2, 1),
    ("resnet50", 512, 2048, 7, 1, 1, 1),
    ("resnet50", 1024, 2048, 14, 1, 2, 1),
    ("resnet50", 2048, 512, 7, 1, 1, 1),
    ("resnet50", 512, 512, 7, 3, 1, 1),
    ("vgg16", 3, 64, 224, 3, 1, 1),
    ("vgg16", 64, 64, 224, 3, 1, 1),
    ("vgg16", 64, 128, 112, 3, 1, 1),
    ("vgg16", 128, 128, 112, 3, 1, 1),
    ("vgg16", 128, 256, 56, 3, 1, 1),
    ("vgg16", 256, 256, 56, 3, 1, 1),
    ("vgg16", 256, 512, 28, 3, 1, 1),
    ("vgg16", 512, 512, 28, 3, 1, 1),
    ("vgg16", 512, 512, 14, 3, 1, 1),
    ("alexnet", 3, 64, 224, 11, 4, 1),
    ("alexnet", 64, 192, 27, 5, 1, 1),
    ("mobilenet", 3, 32, 224, 3, 2, 1),
    ("mobilenet", 32, 32, 112, 3, 1, 32),
    ("mobilenet", 32, 16, 112, 1, 1, 1),
    ("mobilenet", 16, 96, 112, 1, 1, 1),
    ("mobilenet", 96, 96, 112, 3, 2, 96),
    ("mobilenet", 96, 24, 56, 1, 1, 1),
    ("mobilenet", 24, 144, 56, 1, 1, 1),
    ("mobilenet", 144, 144, 56, 3, 1, 144),
    ("mobilenet", 144, 144, 56, 3, 2, 144),
    ("mobilenet", 144, 32, 28, 1, 1, 1),
    ("mobilenet", 192, 192, 28, 3, 1, 192),
    ("mobilenet", 384, 384, 14, 3, 1, 384),
    ("mobilenet", 384, 96, 14, 1, 1, 1),
    ("mobilenet", 960, 960, 7, 3, 1, 960),
    ("mobilenet", 960, 320, 7, 1, 1, 1),
    ("mobilenet", 320, 1280, 7, 1, 1, 1),
    ("mobilenet", 72, 72, 56, 5, 2, 72),
    ("mobilenet", 120, 120, 28, 5, 1, 120),
    ("mobilenet", 672, 672, 14, 5, 1, 672),
    ("mobilenet", 960, 960, 7, 5, 1, 960),
];

/// Processor time of this thread, which other work on the machine does not add to.
fn thread_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes the one structure that it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn problem_of(&(_, channels_in, channels_out, size, kernel, stride, group): &Layer) -> ConvProblem {
    let pad = if kernel == 11 { 2 } else { kernel / 2 };
    ConvProblem {
        batch: 1,
        height: size,
        width: size,
        channels_in,
        channels_out,
        kernel: [kernel, kernel],
        strides: [stride, stride],
        dilations: [1, 1],
        pads_begin: [pad, pad],
        pads_end: [pad, pad],
        group,
    }
}

/// The least time of several runs.
fn measure(algorithm: ConvAlgorithm, problem: &ConvProblem, isa: Isa) -> Result<f64, ConvError> {
    let [height, width] = problem.output_size()?;
    let pixels = problem.height * problem.width;
    let kernel = problem.kernel[0] * problem.kernel[1];
    let input = vec![0.25; pixels * problem.channels_in];
    let mut output = vec![0.0; height * width * problem.channels_out];
    let weights = vec![0.125; problem.channels_out * problem.channels_in / problem.group * kernel];
    let candidate = ConvCandidate::from(algorithm);
    let weights = ConvWeights::pack(&candidate, problem, &weights, isa)?;
    let conv = PackedConv::new(&candidate, problem, &weights, None, Activation::Relu)?;
    let worker = Worker::solo(isa);
    let start = thread_seconds();
    let mut best = f64::INFINITY;
    let mut runs = 0;
    while runs < 5 || (runs < 200 && thread_seconds() - start < 0.15) {
        let start = thread_seconds();
        // SAFETY: the worker has no companions.
        unsafe { conv.run(&worker, &input, None, SharedOutput::new(&mut output)) };
        best = best.min(thread_seconds() - start);
        runs += 1;
    }
    Ok(best)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let only = std::env::args().nth(2).unwrap_or_default();
    let isa = Isa::detect();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} GFLOP/s, one thread", isa.name())?;
    let mut totals = [0.0; 2];
    for layer in LAYERS {
        let problem = problem_of(layer);
        let (network, channels_in, channels_out, size, kernel, stride, group) = *layer;
        let name = format!(
            "{network} {channels_in}->{channels_out} {size}x{size} k{kernel} s{stride} g{group}"
        );
        if !name.contains(&filter) {
            continue;
        }
        write!(out, "{name:42}")?;
        let chosen = ConvAlgorithm::choose(&problem, isa, 1)?;
        let (mut best, mut chosen_seconds) = ((f64::INFINITY, chosen), f64::INFINITY);
        for algorithm in ConvAlgorithm::ALL {
            let is_hopeless = group > 1 && algorithm == ConvAlgorithm::ImplicitGemm;
            let is_wanted = algorithm.name().contains(&only) && !is_hopeless;
            if !algorithm.supports(&problem) || !is_wanted {
                continue;
            }
            let seconds = measure(algorithm, &problem, isa)?;
            let rate = problem.flops()? as f64 / seconds * 1e-9;
            write!(out, " {} {rate:.1} ({:.0} us)", algorithm.name(), seconds * 1e6)?;
            if seconds < best.0 {
                best = (seconds, algorithm);
            }
            if algorithm == chosen {
                chosen_seconds = seconds;
            }
        }
        totals[0] += best.0;
        totals[1] += chosen_seconds;
        let mark = if best.1 == chosen { "" } else { " !" };
        writeln!(out, "; best {}, chosen {}{mark}", best.1.name(), chosen.name())?;
    }
    writeln!(out, "total best {:.2} ms, chosen {:.2} ms", totals[0] * 1e3, totals[1] * 1e3)?;
    Ok(())
}
