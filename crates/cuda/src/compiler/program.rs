//! What the compiler is given for one kernel: its text and its options.

use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use crate::driver::Version;
use crate::launch::KernelSource;

/// What every kernel includes.
const PRELUDE: (&str, &str) = ("prelude.cuh", include_str!("../../kernels/prelude.cuh"));

/// Raised when the meaning of what is cached changes.
const FORMAT: u32 = 1;

/// A kernel's whole text, and the options it is compiled with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The file name that messages show.
    pub name: String,
    /// The text.
    pub text: String,
    /// The options.
    pub options: Vec<String>,
}

impl Program {
    /// The program of a kernel for an architecture such as `sm_90`.
    pub fn new(source: &KernelSource, architecture: &str, include_folder: &Path) -> Self {
        Self {
            name: source.template.to_string(),
            text: text(source),
            options: vec![
                // A real architecture, not a virtual one, gives machine code: the driver then compiles nothing.
                format!("--gpu-architecture={architecture}"),
                "--std=c++17".to_string(),
                "--device-as-default-execution-space".to_string(),
                format!("--include-path={}", include_folder.display()),
            ],
        }
    }

    /// What identifies the machine code that a compiler of this version makes of it. Where the headers lie is no part
    /// of it: they belong to the compiler's version.
    pub fn key(&self, compiler: Version) -> u128 {
        let mut hash = Xxh3::new();
        hash.update(&FORMAT.to_le_bytes());
        hash.update(&compiler.0.to_le_bytes());
        let options = self.options.iter().filter(|option| !option.starts_with("--include-path"));
        for part in options.chain([&self.name, &self.text]) {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        hash.digest128()
    }
}

/// The prelude, the parameters, generated code and the template, each with its own line numbers.
fn text(source: &KernelSource) -> String {
    let (prelude_name, prelude) = PRELUDE;
    let defines: String =
        source.defines.iter().map(|(name, value)| format!("#define {name} {value}\n")).collect();
    [
        (prelude_name, prelude),
        ("parameters", &defines),
        ("generated", &source.generated),
        (source.template, source.text),
    ]
    .iter()
    .map(|(name, part)| format!("#line 1 \"{name}\"\n{part}\n"))
    .collect()
}
