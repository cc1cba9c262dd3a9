//! A training job for machines without a GPU: steps of matrix products on many threads, which wait for each other.

use std::hint::black_box;
use std::io::{Read, Write, stdin, stdout};
use std::process;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Args;
use serde_json::json;

#[derive(Args)]
pub(crate) struct Options {
    #[arg(long)]
    threads: usize,
    /// Seconds from one rate to the next
    #[arg(long)]
    window: f64,
}

/// Rows and columns of the matrices of one thread.
const SIZE: usize = 192;

pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.threads > 0, "--threads must be at least 1");
    ensure!(options.window > 0.0, "--window must be above 0");
    thread::spawn(|| {
        // Whoever started this is gone.
        let _ = stdin().lock().read_to_end(&mut Vec::new());
        process::exit(0);
    });
    let window = Duration::from_secs_f64(options.window);
    let step = Barrier::new(options.threads);
    thread::scope(|scope| {
        for _ in 1..options.threads {
            scope.spawn(|| {
                let mut matrices = Matrices::new();
                loop {
                    matrices.multiply();
                    step.wait();
                }
            });
        }
        let mut matrices = Matrices::new();
        loop {
            let (start, mut steps) = (Instant::now(), 0u32);
            while start.elapsed() < window {
                matrices.multiply();
                step.wait();
                steps += 1;
            }
            let rate = f64::from(steps) / start.elapsed().as_secs_f64();
            let mut output = stdout().lock();
            let said = writeln!(output, "{}", json!({ "steps_per_s": rate }));
            if said.and_then(|()| output.flush()).is_err() {
                process::exit(0);
            }
        }
    })
}

struct Matrices {
    left: Vec<f32>,
    right: Vec<f32>,
    product: Vec<f32>,
}

impl Matrices {
    fn new() -> Self {
        let matrix = || (0..SIZE * SIZE).map(|place| (place % 7) as f32 - 3.0).collect();
        Self { left: matrix(), right: matrix(), product: vec![0.0; SIZE * SIZE] }
    }

    fn multiply(&mut self) {
        let rows = self.left.chunks_exact(SIZE).zip(self.product.chunks_exact_mut(SIZE));
        for (left, sums) in rows {
            sums.fill(0.0);
            for (factor, right) in left.iter().zip(self.right.chunks_exact(SIZE)) {
                sums.iter_mut().zip(right).for_each(|(sum, value)| *sum += factor * value);
            }
        }
        black_box(&self.product);
    }
}
