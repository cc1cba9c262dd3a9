//! Reads arbitrary bytes as a model; nothing may panic, hang or take memory out of proportion.

#![no_main]

#[path = "../../crates/onnx/tests/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    exercise::exercise(bytes::Bytes::copy_from_slice(data));
});
