//! The limits that keep a hostile file from costing much more than its size.

/// The oldest file format that is read; older ones lack operator set versions.
pub const MIN_IR_VERSION: i64 = 3;

/// The oldest version of the standard operator set that is read.
pub const MIN_OPSET: i64 = 7;

/// The most dimensions a tensor may have.
pub const MAX_RANK: usize = 64;

/// How deep bodies and function calls may nest, together.
pub const MAX_NESTING: usize = 48;

/// The most bodies one node may have; the standard's operators have at most two.
pub const MAX_BODIES: usize = 8;

/// The most memory, roughly, that calls of model-local functions may expand to.
pub const MAX_INLINED_BYTES: usize = 256 << 20;

/// How much memory any model's messages may take once decoded.
pub const DECODED_BYTES_ALLOWANCE: usize = 64 << 20;

/// How much more per byte of the file.
pub const MAX_DECODED_BYTES_PER_BYTE: usize = 16;

/// The most elements that a model's sparse tensors may have together once they are made dense.
pub const MAX_DENSIFIED_ELEMENTS: usize = 16 << 20;

/// How often over a model's tensors may read the bytes of its external files.
pub const MAX_EXTERNAL_READS: usize = 8;
