//! The functions of the CUDA driver that Weft calls. What is added to a stream is done before the call returns, which is an order
//! that any program of streams and events allows.
//!
//! They keep the contract of CUDA's documentation with their callers: a pointer is null, which is refused, or leads to what the
//! documentation says. A handle may be any number.
#![allow(non_snake_case, reason = "the names are CUDA's")]

mod capture;
mod context;
mod copy;
mod device;
mod error;
mod event;
mod graph;
mod green;
mod handles;
mod launch;
mod mapping;
mod memory;
mod module;
mod operation;
mod places;
mod sms;
mod stream;
mod tensor_map;

#[cfg(test)]
mod tests;
