//! Damaged and malicious model files: whatever the bytes, reading them ends, soon, and without a panic.

mod exercise;

use std::panic::catch_unwind;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;

const MUTATIONS_PER_SEED: u64 = 2000;

/// Far more than any of these small files takes, so that a busy machine does not fail the test.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// The fuzzer's seeds and the crashes it found.
fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/load_model");
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// A sequence of numbers that is the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

fn mutated(original: &[u8], other: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(bytes.len());
        match numbers.below(6) {
            0 => bytes.truncate(at),
            1 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << numbers.below(8);
                }
            }
            2 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = [0, 1, 0x7f, 0x80, 0xff][numbers.below(5)];
                }
            }
            3 => {
                // A number as protobuf writes it: a length, a dimension, a field.
                let mut varint = vec![0xff; numbers.below(9)];
                varint.push(numbers.below(128) as u8);
                bytes.splice(at..at, varint);
            }
            4 => {
                let end = (at + numbers.below(32)).min(bytes.len());
                let piece = bytes[at.min(end)..end].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => {
                let start = numbers.below(other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(&other[start..]);
            }
        }
    }
    bytes
}

fn check(name: &str, bytes: Vec<u8>) -> bool {
    let start = Instant::now();
    let input = Bytes::from(bytes.clone());
    let outcome = catch_unwind(|| exercise::exercise(input));
    assert!(start.elapsed() < TIME_LIMIT, "{name} takes {:?}: {bytes:02x?}", start.elapsed());
    outcome.unwrap_or_else(|_| panic!("{name} panics: {bytes:02x?}"))
}

#[test]
fn seeds_can_be_read_and_crashes_stay_fixed() {
    for (name, bytes) in corpus() {
        let is_read = check(&name, bytes);
        assert!(is_read || !name.starts_with("seed"), "{name} cannot be read");
    }
}

#[test]
fn mutations_of_models_are_read_or_refused() {
    let corpus = corpus();
    let mut numbers = Numbers(0x5eed);
    for (index, (name, bytes)) in corpus.iter().enumerate() {
        for round in 0..MUTATIONS_PER_SEED {
            let other = &corpus[(index + numbers.below(corpus.len())) % corpus.len()].1;
            check(&format!("mutation {round} of {name}"), mutated(bytes, other, &mut numbers));
        }
    }
}
