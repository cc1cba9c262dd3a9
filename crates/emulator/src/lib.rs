//! A GPU in software, for tests where there is none: the functions of the CUDA driver and of NVRTC that Weft calls, and kernels that are
//! run from PTX, one instruction after another. It says what a kernel computes, and nothing of how long it would take.

mod compiler;
mod driver;
mod machine;
mod memory;
mod tensor_map;
