//! Damaged and malicious messages: whatever the bytes, reading them ends in a value or a typed error, without a panic,
//! and takes memory in proportion to them.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use peak_alloc::PeakAlloc;
use prost::Message;
use weft_protocol::grpc::inference::{ModelInferRequest, ModelInferResponse};
use weft_protocol::json::{decode_request, decode_response};
use weft_protocol::{InferRequest, InferResponse, ProtocolError};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const MUTATIONS_PER_SEED: usize = 2000;

/// Bytes that reading may take for each byte of the message: an input of two bytes becomes a structure.
const MAX_GROWTH: usize = 128;

/// Bytes that reading may take for any message.
const MAX_FIXED_BYTES: usize = 64 << 10;

/// What an error may be long, whatever the message.
const MAX_PROBLEM_BYTES: usize = 1024;

/// A sequence of numbers that is the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// What is put into messages: numbers that do not fit, values that do not belong, nesting, lengths.
const INSERTIONS: &[&[u8]] = &[
    b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    b"]",
    b"{\"a\":",
    b"}",
    b"\"",
    b"\\",
    b",",
    b"-1",
    b"9223372036854775807",
    b"18446744073709551616",
    b"1e999",
    b"0.1",
    b"NaN",
    b"null",
    b"\"shape\":[4294967296,4294967296],",
    b"\"shape\":[0,9223372036854775807],",
    b"\"data\":[1,2,3],",
    b"\"binary_data_size\":18446744073709551615,",
    b"\"datatype\":\"BYTES\",",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\x2a\x00\x2a\x00\x2a\x00\x2a\x00",
];

fn mutated(original: &[u8], other: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(bytes.len());
        let end = (at + numbers.below(16)).min(bytes.len());
        match numbers.below(6) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << numbers.below(8),
            2 => drop(bytes.splice(at..end, INSERTIONS[numbers.below(INSERTIONS.len())].to_vec())),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => {
                bytes.truncate(at);
                bytes.extend_from_slice(&other[numbers.below(other.len())..]);
            }
        }
    }
    bytes
}

/// Runs `read`, which must not take more memory than `length` allows.
#[track_caller]
fn in_proportion<T>(length: usize, read: impl FnOnce() -> T) -> T {
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let outcome = read();
    let taken = ALLOCATOR.peak_usage().saturating_sub(before);
    assert!(taken <= length * MAX_GROWTH + MAX_FIXED_BYTES, "{taken} bytes for {length}");
    outcome
}

fn read_http(body: &Bytes, header_length: Option<usize>) -> Result<InferRequest, ProtocolError> {
    // An answer is read from the same bytes; most are none.
    let _ = in_proportion(body.len(), || decode_response(body, header_length));
    in_proportion(body.len(), || decode_request(body, header_length))
}

fn read_grpc(body: &Bytes) -> Option<InferRequest> {
    if let Ok(message) = ModelInferResponse::decode(body.clone()) {
        let _ = in_proportion(body.len(), || InferResponse::from_grpc(message));
    }
    let message = in_proportion(body.len(), || ModelInferRequest::decode(body.clone())).ok()?;
    in_proportion(body.len(), || InferRequest::from_grpc(message)).ok()
}

fn seeds(extension: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut seeds = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(extension) {
            seeds.push((name, fs::read(path).unwrap()));
        }
    }
    seeds.sort();
    assert!(seeds.len() > 2);
    seeds
}

/// One test, because the allocator counts for the whole process.
#[test]
fn damaged_messages_end_in_a_value_or_an_error() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut read, mut refused) = (0, 0);

    let seeds_http = seeds(".http");
    for (index, (name, seed)) in seeds_http.iter().enumerate() {
        let stated: usize = name.split('.').nth(1).unwrap().parse().unwrap();
        let other = &seeds_http[(index + 1) % seeds_http.len()].1;
        for _ in 0..MUTATIONS_PER_SEED {
            let body = Bytes::from(mutated(seed, other, &mut numbers));
            let header_length = match numbers.below(4) {
                0 => Some(numbers.below(2 * body.len() + 1)),
                _ => Some(stated).filter(|&stated| stated > 0),
            };
            match read_http(&body, header_length) {
                Ok(_) => read += 1,
                Err(problem) => {
                    assert!(problem.to_string().len() < MAX_PROBLEM_BYTES, "{problem}");
                    refused += 1;
                }
            }
        }
    }

    let seeds_grpc = seeds(".grpc");
    for (index, (_, seed)) in seeds_grpc.iter().enumerate() {
        let other = &seeds_grpc[(index + 1) % seeds_grpc.len()].1;
        for _ in 0..MUTATIONS_PER_SEED {
            match read_grpc(&Bytes::from(mutated(seed, other, &mut numbers))) {
                Some(_) => read += 1,
                None => refused += 1,
            }
        }
    }
    // Mutations that all fail at the first byte would test nothing.
    assert!(read > 200 && refused > 200, "{read} read, {refused} refused");

    for text in [
        "[".repeat(1 << 20),
        "{\"a\":".repeat(1 << 20),
        format!("{{\"inputs\":[{}", "{},".repeat(1 << 20)),
        format!("{{\"inputs\":[{}]}}", vec!["{\"name\":\"\"}"; 1 << 20].join(",")),
        format!("{{\"outputs\":[{}]}}", vec!["{\"name\":\"\"}"; 1 << 20].join(",")),
        format!("{{\"inputs\":[{{\"name\":\"x\",\"shape\":[{}", "1,".repeat(1 << 20)),
        tensor("[9223372036854775807,9223372036854775807]", "[1]"),
        tensor("[536870912]", "[1]"),
        tensor("[1]", &format!("[{}]", "1,".repeat(1 << 20))),
        tensor("[1]", &format!("{}1{}", "[".repeat(1 << 20), "]".repeat(1 << 20))),
        tensor("[0,9223372036854775807]", "[]"),
        tensor("[1]", &format!("[{}]", "9".repeat(1 << 20))),
    ] {
        let body = Bytes::from(text);
        let problem = read_http(&body, None).unwrap_err().to_string();
        assert!(problem.len() < MAX_PROBLEM_BYTES, "{problem}");
    }
    // Empty inputs, and inputs with contents that hold nothing.
    for piece in [[0x2a, 0x00].as_slice(), &[0x2a, 0x02, 0x2a, 0x00], &[0x3a, 0x00]] {
        assert_eq!(read_grpc(&piece.repeat(1 << 18).into()), None);
    }
}

fn tensor(shape: &str, data: &str) -> String {
    let members = format!("\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":{shape},\"data\":{data}");
    format!("{{\"inputs\":[{{{members}}}]}}")
}
