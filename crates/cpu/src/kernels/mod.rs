//! Owns the kernels other than convolution and matrix product: functions of slices that know nothing of graphs.
//!
//! All workers of a run call a kernel alike; it shares its work among them and returns when all of it is done.

mod activate;
mod attention;
mod binary;
mod broadcast;
mod fill;
mod gather_rows;
mod normalise;
mod parts;
mod pooling;
mod reduce;
mod resize;
mod scale_shift;
mod softmax;
mod strided_copy;
#[cfg(test)]
pub(crate) mod testing;
mod unary;

pub(crate) use activate::activate;
pub use attention::{Attention, HeadStrides};
pub use binary::{BinaryFunction, BinaryKernel};
pub use broadcast::BroadcastError;
pub use fill::{fill, pad};
pub use gather_rows::{RowIndexError, gather_rows};
pub use normalise::{Normalisation, Normalise};
pub use pooling::{Pooling, PoolingError, PoolingKind, PoolingProblem};
pub use reduce::{Reduce, ReduceError, Reduction};
pub use resize::{Resize, ResizeError, ResizeTap};
pub use scale_shift::ScaleShift;
pub use softmax::Softmax;
pub use strided_copy::{CopyAxis, StridedCopy, ViewError};
pub use unary::UnaryKernel;
