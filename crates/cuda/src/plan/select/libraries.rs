//! Candidates that NVIDIA's libraries compute, after all that kernels here do.

use weft_device::DeviceError;
use weft_ir::Tensor;
use weft_ir::operators::fused::Epilogue;

use super::conv::Windows;
use super::epilogue::stored_bias_weights;
use super::filters::FilterLayout;
use crate::choosing::{CUBLAS_LT, CUDNN, Wanted};
use crate::kernels::gemm::{GemmProblem, Operands};
use crate::launch::{Argument, Candidate};
use crate::library_call::{
    CallOperands, Convolution, LibraryCall, LibrarySet, Operation, Product, WORKSPACE_BYTES,
};
use crate::plan::site::Site;

/// Algorithms of cuBLASLt that are candidates where a search asks for all of them, the ones that it expects to be fastest.
const MAX_RANKS: usize = 8;

/// The bias as libraries read it; null where it or the library is absent.
pub(super) fn bias(site: &Site<'_>, libraries: LibrarySet) -> Result<Argument, DeviceError> {
    let bias = match libraries.cublas_lt {
        true => stored_bias_weights(site)?,
        false => None,
    };
    Ok(bias.map_or(Argument::Null, Argument::Weights))
}

/// The libraries that compute candidates, and which of those are wanted.
#[derive(Clone, Copy)]
pub(super) struct Library<'a> {
    pub(super) set: LibrarySet,
    pub(super) wanted: &'a Wanted,
}

impl Library<'_> {
    /// The product by cuBLASLt, with the operands that the kernel here has but for the bias, which is that of [`bias`];
    /// none where the library is absent or does not compute it. The first `workspace_from` bytes of the step's workspace
    /// belong to somebody else.
    pub(super) fn products(
        self,
        site: &Site<'_>,
        problem: &GemmProblem,
        operands: &Operands,
        workspace_from: usize,
    ) -> Vec<Candidate> {
        let product = Product::of(problem, site.chip.sm_count).filter(|_| self.set.cublas_lt);
        let Some(product) = product else { return Vec::new() };
        let Operands { left, right, bias, residual, output } = operands.clone();
        let workspace = Argument::Workspace { offset_bytes: workspace_from };
        let operands = CallOperands { left, right, bias, residual, output, workspace };
        let ranks = if *self.wanted == Wanted::Ranked { 1 } else { MAX_RANKS };
        let named = (0..ranks).map(|rank| match rank {
            0 => (CUBLAS_LT.to_string(), rank),
            _ => (format!("{CUBLAS_LT} {rank}"), rank),
        });
        let wanted = named.filter(|(name, _)| self.wanted.includes(name));
        wanted
            .map(|(name, rank)| {
                let operation = Operation::Product(Product { rank, ..product });
                candidate(name, operation, operands.clone(), workspace_from)
            })
            .collect()
    }

    /// The convolution by cuDNN, one candidate per algorithm; none where the library is absent or does not compute it.
    pub(super) fn convolutions(
        self,
        site: &Site<'_>,
        windows: &Windows<'_>,
        epilogue: &Epilogue,
    ) -> Result<Vec<Candidate>, DeviceError> {
        if !self.set.cudnn {
            return Ok(Vec::new());
        }
        let (image, count) = (windows.image, windows.filters);
        let Epilogue { has_residual, activation } = *epilogue;
        let all =
            Convolution::of(windows.batch, image, count, has_residual, activation, site.precision);
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let operands = convolution_operands(site, windows, has_residual)?;
        let named = all
            .into_iter()
            .map(|convolution| (format!("{CUDNN} {}", convolution.algorithm.name()), convolution));
        let wanted = named.filter(|(name, _)| self.wanted.includes(name));
        Ok(wanted
            .map(|(name, convolution)| {
                candidate(name, Operation::Convolution(convolution), operands.clone(), 0)
            })
            .collect())
    }
}

/// The operands of a convolution as cuDNN reads them.
fn convolution_operands(
    site: &Site<'_>,
    windows: &Windows<'_>,
    has_residual: bool,
) -> Result<CallOperands<Argument>, DeviceError> {
    let (image, count) = (windows.image, windows.filters);
    let storage = site.precision.storage();
    let [height, width] = image.kernel;
    let stride = height * width * image.channels;
    let layout = FilterLayout { channels: image.channels, width, first_tap: 0, stride };
    let filters = layout.filters(site, windows)?;
    let bias = match stored_bias_weights(site)? {
        Some(bias) => bias,
        // cuDNN adds a bias always.
        None => site.weights.get_or_copy(&Tensor::vector(vec![0f32; count]), storage)?,
    };
    Ok(CallOperands {
        left: Argument::Input(0),
        right: Argument::Weights(filters),
        bias: Argument::Weights(bias),
        residual: if has_residual { Argument::Input(3) } else { Argument::Null },
        output: Argument::Output(0),
        workspace: Argument::Workspace { offset_bytes: 0 },
    })
}

fn candidate(
    name: String,
    operation: Operation,
    operands: CallOperands<Argument>,
    workspace_from: usize,
) -> Candidate {
    let call = LibraryCall { operation, operands };
    Candidate {
        library_call: Some(Box::new(call)),
        ..Candidate::new(name, Vec::new(), workspace_from + WORKSPACE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use weft_ir::Attributes;

    use super::super::select;
    use super::super::testing::{OneNode, Operand, given};
    use super::*;
    use crate::Precision;

    fn names(node: &OneNode, libraries: LibrarySet) -> Vec<String> {
        let site = Site { libraries: libraries.into(), ..node.site(Precision::F16) };
        let candidates = select(&site).unwrap().unwrap().candidates;
        candidates.into_iter().map(|candidate| candidate.name).collect()
    }

    #[test]
    fn libraries_come_after_all_kernels() {
        let both = LibrarySet { cublas_lt: true, cudnn: true };
        let stack = OneNode::new(
            "MatMul",
            vec![given(&[4, 6, 16]), given(&[4, 16, 10])],
            Attributes::new(),
        );
        let with = names(&stack, both);
        let mut expected = names(&stack, LibrarySet::default());
        assert!(!expected.iter().any(|name| name == "cublaslt"));
        expected.push("cublaslt".into());
        assert_eq!(with, expected);
        assert_eq!(names(&stack, LibrarySet { cublas_lt: false, ..both }).len(), with.len() - 1);
    }

    #[test]
    fn a_call_follows_the_launches_that_pad_its_rows() {
        let node = OneNode::new(
            "MatMul",
            vec![given(&[6, 15]), Operand::Given(weft_ir::DataType::F32, vec![15, 16])],
            Attributes::new(),
        );
        let libraries = LibrarySet { cublas_lt: true, cudnn: true };
        let site = Site { libraries: libraries.into(), ..node.site(Precision::F16) };
        let last = select(&site).unwrap().unwrap().candidates.pop().unwrap();
        assert_eq!(last.launches.len(), 1);
        let call = last.library_call.unwrap();
        let Argument::Workspace { offset_bytes: padded } = call.operands.left else {
            panic!("{:?}", call.operands)
        };
        let Argument::Workspace { offset_bytes: scratch } = call.operands.workspace else {
            panic!("{:?}", call.operands)
        };
        assert!(padded < scratch && scratch + WORKSPACE_BYTES == last.workspace_bytes);
    }
}
