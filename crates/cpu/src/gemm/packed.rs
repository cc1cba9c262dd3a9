//! Owns weights that were packed once for many products.

use super::pack::{PackSource, pack_panels};
use super::panels::Panels;
use super::parameters::PanelWidth;
use crate::{AlignedBuffer, AllocationError, Isa, Pool, PoolError, SharedOutput};

/// How many panels one task packs: together they read whole cache lines of every row.
const PANELS_PER_TASK: usize = 8;

/// In which order a weight matrix of K by N lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightOrder {
    /// K rows of N.
    KByN,
    /// N rows of K.
    NByK,
    /// The filters of a convolution: N filters of K / `positions` channels of `positions` kernel positions. They are
    /// packed with the channel moving fastest, as pixels of an image whose channels lie together need it.
    Filters {
        /// Height times width of the kernel.
        positions: usize,
    },
}

/// A weight matrix as a model stores it.
#[derive(Debug, Clone, Copy)]
pub struct WeightMatrix<'a> {
    /// Its K * N values.
    pub data: &'a [f32],
    /// K: what a product sums over.
    pub depth: usize,
    /// N: the columns of the product.
    pub columns: usize,
    /// In which order the values lie.
    pub order: WeightOrder,
}

/// Why weights could not be packed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    /// The values do not match the shape.
    #[error("a weight matrix of {depth} by {columns} cannot have {elements} values")]
    Length {
        /// K.
        depth: usize,
        /// N.
        columns: usize,
        /// How many values there are.
        elements: usize,
    },
    /// The kernel positions do not divide K.
    #[error("filters of {depth} values cannot have {positions} kernel positions")]
    Positions {
        /// K.
        depth: usize,
        /// Height times width of the kernel.
        positions: usize,
    },
    /// There is no memory for them.
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    /// The pool that should pack them failed.
    #[error(transparent)]
    Pool(#[from] PoolError),
}

/// A K by N matrix laid out for the register kernels of one instruction set.
#[derive(Debug)]
pub struct PackedB {
    panels: Panels,
    data: AlignedBuffer,
}

impl PackedB {
    /// Packs on the calling thread.
    pub fn pack(isa: Isa, width: PanelWidth, weights: &WeightMatrix) -> Result<Self, PackError> {
        let (mut packed, source) = Self::prepare(isa, width, weights)?;
        pack_panels(&source, packed.panels, 0..packed.panels.count(), &mut packed.data);
        Ok(packed)
    }

    /// Packs with all workers of a pool, for its instruction set.
    pub fn pack_on(
        pool: &Pool,
        width: PanelWidth,
        weights: &WeightMatrix,
    ) -> Result<Self, PackError> {
        let (mut packed, source) = Self::prepare(pool.isa(), width, weights)?;
        let panels = packed.panels;
        let target = SharedOutput::new(&mut packed.data);
        let count = panels.count();
        pool.run(|worker| {
            worker.parallel(count.div_ceil(PANELS_PER_TASK), |task| {
                let first = task * PANELS_PER_TASK;
                let end = (first + PANELS_PER_TASK).min(count);
                let start = panels.panel(first).offset;
                let stop = if end < count { panels.panel(end).offset } else { target.len() };
                // SAFETY: panels follow one another without overlap, so no other task uses this part of the buffer.
                let part = unsafe { target.slice_mut(start, stop - start) };
                pack_panels(&source, panels, first..end, part);
            });
        })?;
        Ok(packed)
    }

    fn prepare<'a>(
        isa: Isa,
        width: PanelWidth,
        weights: &WeightMatrix<'a>,
    ) -> Result<(Self, PackSource<'a>), PackError> {
        let WeightMatrix { data, depth, columns, order } = *weights;
        let elements = data.len();
        if depth.checked_mul(columns) != Some(elements) {
            return Err(PackError::Length { depth, columns, elements });
        }
        if let WeightOrder::Filters { positions } = order
            && (positions == 0 || !depth.is_multiple_of(positions))
        {
            return Err(PackError::Positions { depth, positions });
        }
        let panels = Panels::new(isa, width, depth, columns);
        let elements = panels.elements().ok_or(AllocationError { elements })?;
        let stride = if order == WeightOrder::KByN { columns } else { depth };
        let source = PackSource { data, stride, order };
        Ok((Self { panels, data: AlignedBuffer::zeroed(elements)? }, source))
    }

    /// K.
    pub fn depth(&self) -> usize {
        self.panels.depth()
    }

    /// N.
    pub fn columns(&self) -> usize {
        self.panels.columns()
    }

    /// How much memory it takes.
    pub fn bytes(&self) -> usize {
        self.data.len() * size_of::<f32>()
    }

    pub(super) fn panels(&self) -> Panels {
        self.panels
    }

    /// Its values, panel after panel.
    pub(crate) fn data(&self) -> &[f32] {
        &self.data
    }
}
