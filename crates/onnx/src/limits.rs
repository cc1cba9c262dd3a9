//! The limits that keep a hostile file from costing more than its size allows.

/// The oldest file format that is read; older ones lack operator set versions.
pub const MIN_IR_VERSION: i64 = 3;

/// The oldest version of the standard operator set that is read.
pub const MIN_OPSET: i64 = 7;

/// The most dimensions a tensor may have.
pub const MAX_RANK: usize = 64;

/// How deep bodies and function calls may nest, together.
pub const MAX_NESTING: usize = 48;

/// The most bytes of nodes that calls of model-local functions may expand to.
pub const MAX_INLINED_BYTES: usize = 128 << 20;
