//! Operators that only rewrites make: several operators of a model merged into one.

mod attention;
mod conv;
mod epilogue;
mod mat_mul;
mod scale_shift;

pub use attention::{AttentionSizes, FusedAttention};
pub use conv::FusedConv;
pub use epilogue::Epilogue;
pub use mat_mul::FusedMatMul;
pub use scale_shift::ScaleShift;
