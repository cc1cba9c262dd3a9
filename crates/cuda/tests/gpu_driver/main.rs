//! The driver's handles on a GPU, or on one in software. Where there is none the tests say so and pass, unless `WEFT_REQUIRE_GPU` is `1`.
#![allow(clippy::print_stderr)]

mod confinement;
mod failures;
mod gpu;
mod graphs;
mod launches;
mod memory;
