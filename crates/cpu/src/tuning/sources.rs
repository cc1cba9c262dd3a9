//! The version of the kernels: it changes when the code does that decides how fast they are.

use std::sync::LazyLock;

use xxhash_rust::xxh3::Xxh3;

/// Every file that decides how fast the kernels with parameters are.
const SOURCES: &[(&str, &str)] = &[
    ("activation.rs", include_str!("../activation.rs")),
    ("conv/algorithm.rs", include_str!("../conv/algorithm.rs")),
    ("conv/candidate.rs", include_str!("../conv/candidate.rs")),
    ("conv/depthwise.rs", include_str!("../conv/depthwise.rs")),
    ("conv/depthwise/parameters.rs", include_str!("../conv/depthwise/parameters.rs")),
    ("conv/implicit_gemm.rs", include_str!("../conv/implicit_gemm.rs")),
    ("conv/mod.rs", include_str!("../conv/mod.rs")),
    ("conv/packed.rs", include_str!("../conv/packed.rs")),
    ("conv/problem.rs", include_str!("../conv/problem.rs")),
    ("conv/reference.rs", include_str!("../conv/reference.rs")),
    ("conv/winograd/gather.rs", include_str!("../conv/winograd/gather.rs")),
    ("conv/winograd/mod.rs", include_str!("../conv/winograd/mod.rs")),
    ("conv/winograd/parameters.rs", include_str!("../conv/winograd/parameters.rs")),
    ("conv/winograd/scatter.rs", include_str!("../conv/winograd/scatter.rs")),
    ("conv/winograd/transform.rs", include_str!("../conv/winograd/transform.rs")),
    ("conv/winograd/weights.rs", include_str!("../conv/winograd/weights.rs")),
    ("gemm/blocking.rs", include_str!("../gemm/blocking.rs")),
    ("gemm/epilogue.rs", include_str!("../gemm/epilogue.rs")),
    ("gemm/finish.rs", include_str!("../gemm/finish.rs")),
    ("gemm/kernel.rs", include_str!("../gemm/kernel.rs")),
    ("gemm/linear.rs", include_str!("../gemm/linear.rs")),
    ("gemm/matmul.rs", include_str!("../gemm/matmul.rs")),
    ("gemm/mod.rs", include_str!("../gemm/mod.rs")),
    ("gemm/pack.rs", include_str!("../gemm/pack.rs")),
    ("gemm/packed.rs", include_str!("../gemm/packed.rs")),
    ("gemm/panels.rs", include_str!("../gemm/panels.rs")),
    ("gemm/parameters.rs", include_str!("../gemm/parameters.rs")),
    ("gemm/rows.rs", include_str!("../gemm/rows.rs")),
    ("gemm/space.rs", include_str!("../gemm/space.rs")),
    ("gemm/tile.rs", include_str!("../gemm/tile.rs")),
    ("kernels/activate.rs", include_str!("../kernels/activate.rs")),
    ("pool/barrier.rs", include_str!("../pool/barrier.rs")),
    ("pool/worker.rs", include_str!("../pool/worker.rs")),
    ("simd/avx2.rs", include_str!("../simd/avx2.rs")),
    ("simd/avx512.rs", include_str!("../simd/avx512.rs")),
    ("simd/math.rs", include_str!("../simd/math.rs")),
    ("simd/mod.rs", include_str!("../simd/mod.rs")),
    ("simd/portable.rs", include_str!("../simd/portable.rs")),
];

/// A hash over the text of all kernels.
pub(super) fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let mut hash = Xxh3::new();
        for (name, text) in SOURCES {
            hash.update(name.as_bytes());
            hash.update(text.as_bytes());
        }
        format!("{:016x}", hash.digest())
    });
    &VERSION
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn collect(folder: &Path, files: &mut Vec<String>) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                collect(&path, files);
            } else if !matches!(name, "tests.rs" | "testing.rs") {
                files.push(path.strip_prefix(&root).unwrap().to_str().unwrap().to_string());
            }
        }
    }

    #[test]
    fn every_file_of_the_kernels_counts() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut files = Vec::new();
        ["conv", "gemm", "simd"].iter().for_each(|name| collect(&root.join(name), &mut files));
        assert!(files.len() > 20);
        for file in files {
            assert!(SOURCES.iter().any(|(name, _)| *name == file), "{file} is missing");
        }
    }
}
