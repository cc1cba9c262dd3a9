//! Whole models on a GPU, or on one in software. Where there is none the tests say so and pass, unless `WEFT_REQUIRE_GPU` is `1`.
#![allow(clippy::print_stderr)]

mod agreement;
mod failures;
mod groups;
mod mixes;
mod sharing;
mod subject;
mod trials;
