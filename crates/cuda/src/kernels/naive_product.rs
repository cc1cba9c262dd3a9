//! Products computed plainly: `naive_product.cu`.

use super::gemm::{GemmProblem, Left, Operands, epilogue_activation, product_arguments};
use crate::Storage;
use crate::choosing::Wanted;
use crate::launch::{Argument, Candidate, KernelSource, Launch};

const TEXT: &str = concat!(
    include_str!("../../kernels/divider.cuh"),
    include_str!("../../kernels/gemm_problem.cuh"),
    include_str!("../../kernels/naive_product.cu")
);

const THREADS: usize = 256;

/// The plain way to compute products, where a search will hold others to it. The first `workspace_from` bytes of the
/// step's workspace belong to somebody else.
pub(crate) fn naive_product(
    problem: &GemmProblem,
    operands: &[Operands],
    workspace_from: usize,
    wanted: &Wanted,
) -> Option<Candidate> {
    let is_needed = *wanted == Wanted::All && problem.is_supported();
    is_needed.then(|| {
        let small = |count: usize| u32::try_from(count).expect("sizes were checked");
        let kernel_x = match problem.left {
            Left::Matrix { .. } => 1,
            Left::Image(image) => image.kernel[1],
        };
        let mut arguments = product_arguments(problem, 1, operands).to_vec();
        arguments.push(Argument::i32(kernel_x));
        let blocks = (problem.m * problem.n).div_ceil(THREADS);
        let launch = Launch {
            source: source(problem, operands.len()),
            grid: [small(blocks), 1, small(problem.stack * operands.len())],
            threads: THREADS as u32,
            shared_bytes: 0,
            cluster: [1, 1, 1],
            arguments,
        };
        Candidate::new("naive product", vec![launch], workspace_from)
    })
}

fn source(problem: &GemmProblem, group: usize) -> KernelSource {
    let flag = |is_set: bool| u8::from(is_set).to_string();
    let defines = vec![
        ("STORAGE", problem.precision.storage().cuda_name().to_string()),
        ("GROUP", group.to_string()),
        ("CONVOLUTION", flag(matches!(problem.left, Left::Image(_)))),
        ("RIGHT_BY_ROWS", flag(problem.right.by_rows)),
        ("ACTIVATION", epilogue_activation(problem.activation).0.to_string()),
        ("BIAS", problem.bias.unwrap_or(Storage::F32).cuda_name().to_string()),
    ];
    KernelSource::new("naive_product.cu", TEXT, "naive_product", defines)
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    let problems = super::gemm::sample_problems();
    problems.iter().map(|problem| source(problem, 1)).chain([source(&problems[0], 3)]).collect()
}
