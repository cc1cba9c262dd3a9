//! Speed of matrix products on one core, as a share of what the core's multipliers can do.
//!
//! `cargo run --release -p weft-cpu --example gemm_bench`; `WEFT_CPU_ISA` selects a narrower instruction set,
//! and an argument such as `x64` only those products whose shape contains it.

use std::error::Error;
use std::hint::black_box;
use std::io::Write;
use std::time::Duration;

use weft_cpu::gemm::{
    BatchItem, Epilogue, MatMul, PackedB, PanelWidth, Rows, TileLimits, WeightMatrix, WeightOrder,
    gemm, matmul,
};
use weft_cpu::simd::Simd;
use weft_cpu::{AlignedBuffer, Isa, SharedOutput, SimdTask, Worker};

/// M, K, N.
const SHAPES: [[usize; 3]; 14] = [
    [3136, 576, 64],
    [49, 4608, 512],
    [3136, 64, 256],
    [1024, 1024, 1024],
    [128, 384, 1536],
    [1, 25088, 4096],
    [8, 4096, 1000],
    [12544, 32, 16],
    [12544, 16, 96],
    [3136, 144, 24],
    [196, 512, 512],
    [196, 1152, 256],
    [49, 2048, 512],
    [12544, 147, 64],
];

/// Heads, M, K, N, and whether the right operand is stored as N rows of K.
const BATCHES: [(usize, [usize; 3], bool); 4] = [
    (12, [128, 32, 128], true),
    (12, [128, 128, 32], false),
    (12, [197, 64, 197], true),
    (1, [1024, 1024, 1024], false),
];

fn main() -> Result<(), Box<dyn Error>> {
    let isa = Isa::detect();
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let peak = (0..50).map(|_| isa.run(MultiplyRegisters)).fold(0.0, f64::max);
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}: {peak:.1} GFLOP/s in registers", isa.name())?;
    let worker = Worker::solo(isa);
    for [rows, depth, columns] in SHAPES {
        let name = format!("{rows}x{depth}x{columns}");
        if !name.contains(&wanted) {
            continue;
        }
        let weights = filled(depth * columns)?;
        let a = filled(rows * depth)?;
        let bias = filled(columns)?;
        let mut c = AlignedBuffer::zeroed(rows * columns)?;
        let matrix = WeightMatrix { data: &weights, depth, columns, order: WeightOrder::NByK };
        let packed = PackedB::pack(isa, PanelWidth::Full, &matrix)?;
        let packing = best(|| drop(black_box(PackedB::pack(isa, PanelWidth::Full, &matrix))));
        let limits = TileLimits::default();
        let epilogue = Epilogue { bias: Some(&bias), ..Epilogue::default() };
        let output = SharedOutput::new(&mut c);
        let left = Rows::new(&a, rows, depth, depth);
        // SAFETY: one worker alone uses the output.
        let seconds =
            best(|| unsafe { gemm(&worker, &left, &packed, &limits, output, columns, &epilogue) });
        let rate = 2.0 * (rows * depth * columns) as f64 / seconds * 1e-9;
        let read = packed.bytes() as f64 / seconds * 1e-9;
        let pack_rate = 2.0 * packed.bytes() as f64 / packing * 1e-9;
        writeln!(
            out,
            "{name:>18}: {rate:6.1} GFLOP/s {:5.1} %  weights {read:5.1} GB/s, packed at {pack_rate:.1} GB/s",
            rate / peak * 100.0
        )?;
    }
    for (heads, [rows, depth, columns], b_transposed) in BATCHES {
        let name =
            format!("{heads} * {rows}x{depth}x{columns}{}", if b_transposed { "^T" } else { "" });
        if !name.contains(&wanted) {
            continue;
        }
        let a = filled(heads * rows * depth)?;
        let b = filled(heads * depth * columns)?;
        let mut c = AlignedBuffer::zeroed(heads * rows * columns)?;
        let items: Vec<BatchItem> = (0..heads)
            .map(|head| BatchItem {
                a: head * rows * depth,
                b: head * depth * columns,
                output: head * rows * columns,
            })
            .collect();
        let b_stride = if b_transposed { depth } else { columns };
        let products = MatMul {
            items: &items,
            rows,
            depth,
            columns,
            a: &a,
            a_stride: depth,
            b: &b,
            b_stride,
            b_transposed,
            scale: 1.0,
            output_stride: columns,
            epilogue: Epilogue::default(),
        };
        let output = SharedOutput::new(&mut c);
        // SAFETY: one worker alone uses the output.
        let seconds = best(|| unsafe { matmul(&worker, &products, output) });
        let rate = 2.0 * (heads * rows * depth * columns) as f64 / seconds * 1e-9;
        writeln!(out, "{name:>18}: {rate:6.1} GFLOP/s {:5.1} %", rate / peak * 100.0)?;
    }
    Ok(())
}

fn filled(elements: usize) -> Result<AlignedBuffer, Box<dyn Error>> {
    let mut buffer = AlignedBuffer::zeroed(elements)?;
    for (index, value) in buffer.iter_mut().enumerate() {
        *value = (index % 101) as f32 * 0.01 - 0.5;
    }
    Ok(buffer)
}

/// The least processor time that `work` takes, of as many tries as fit into a fifth of a second.
fn best(mut work: impl FnMut()) -> f64 {
    let begin = thread_time();
    let mut least = f64::INFINITY;
    let mut tries = 0;
    while tries < 3 || thread_time() - begin < Duration::from_millis(200) {
        let before = thread_time();
        work();
        least = least.min((thread_time() - before).as_secs_f64());
        tries += 1;
    }
    least
}

/// Processor time of this thread: other programs may use the machine too.
fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Multiplies and adds in registers only; returns GFLOP/s.
struct MultiplyRegisters;

impl SimdTask for MultiplyRegisters {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f64 {
        const ROUNDS: usize = 100_000;
        const CHAINS: usize = 12;
        let mut sums = [simd.zero(); CHAINS];
        let (factor, term) = (simd.splat(black_box(0.999)), simd.splat(black_box(0.001)));
        let before = thread_time();
        for _ in 0..ROUNDS {
            for sum in &mut sums {
                *sum = simd.fma(*sum, factor, term);
            }
        }
        let seconds = (thread_time() - before).as_secs_f64();
        for sum in sums {
            black_box(simd.sum(sum));
        }
        (2 * ROUNDS * CHAINS * S::LANES) as f64 / seconds * 1e-9
    }
}
