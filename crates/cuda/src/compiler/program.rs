//! What the compiler is given for one kernel: its text and its options.

use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use super::shared_program::shared_text;
use crate::driver::Version;
use crate::launch::KernelSource;

/// What stands before every kernel.
const PRELUDE: (&str, &str) = ("prelude.cuh", include_str!("../../kernels/prelude.cuh"));

/// What stands after those that compute several requests at once, and how such a kernel is called.
const PARAMETERS: (&str, &str) = ("parameters.cuh", include_str!("../../kernels/parameters.cuh"));
const ENTRIES: (&str, &str) = ("entries.cuh", include_str!("../../kernels/entries.cuh"));

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

/// The prelude, the parameters, generated code and the template, each with its own line numbers; before and after them
/// what has one launch compute several requests, where it does.
fn text(source: &KernelSource) -> String {
    if let Some(shared) = &source.shared {
        let parts = [PRELUDE, PARAMETERS, (source.template, source.text)];
        let head: String = parts.map(numbered).concat();
        return format!("#define SHARED_LAUNCH\n{head}{}", shared_text(shared, source.entry));
    }
    let defines: String = source.defines.iter().map(define).collect();
    let of_entries = source.entries.map(|entries| {
        let defines = [
            ("ENTRY_BLOCKS", entries.blocks.to_string()),
            ("ENTRY_KERNEL", source.entry.to_string()),
            ("ENTRY_THREADS", entries.threads.to_string()),
        ];
        defines.iter().map(define).collect::<String>()
    });
    let of_entries = of_entries.as_deref();
    let before = of_entries.map(|defines| ("entries", defines));
    let parts = [
        PRELUDE,
        ("parameters", &defines),
        ("generated", &source.generated),
        (source.template, source.text),
    ];
    let after = of_entries.map(|_| [PARAMETERS, ENTRIES]);
    before.into_iter().chain(parts).chain(after.into_iter().flatten()).map(numbered).collect()
}

/// A parameter of a template.
pub(super) fn define((name, value): &(&str, String)) -> String {
    format!("#define {name} {value}\n")
}

/// A part of a program that counts its own lines.
pub(super) fn numbered((name, part): (&str, &str)) -> String {
    format!("#line 1 \"{name}\"\n{part}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> KernelSource {
        let defines = vec![("TILE", "64".to_string()), ("STORAGE", "__half".to_string())];
        KernelSource::new("copy.cu", "first line\nsecond line", "copy", defines)
    }

    fn program(source: &KernelSource) -> Program {
        Program::new(source, "sm_90", Path::new("/cuda/include"))
    }

    #[test]
    fn parts_stand_in_order_and_count_their_own_lines() {
        let source = KernelSource { generated: "generated code".to_string(), ..source() };
        let text = program(&source).text;
        let after_prelude = text.split_once("#line 1 \"parameters\"\n").unwrap().1;
        assert_eq!(
            after_prelude,
            "#define TILE 64\n#define STORAGE __half\n\n\
             #line 1 \"generated\"\ngenerated code\n\
             #line 1 \"copy.cu\"\nfirst line\nsecond line\n"
        );
        assert!(text.starts_with("#line 1 \"prelude.cuh\"\n"));
    }

    #[test]
    fn a_launch_for_entries_is_told_so_before_everything_else() {
        use crate::launch::Entries;
        let entries = Some(Entries { blocks: 3, threads: 128 });
        let text = program(&KernelSource { entries, ..source() }).text;
        assert!(text.starts_with("#line 1 \"entries\"\n#define ENTRY_BLOCKS 3\n"), "{text}");
        assert!(text.contains("#define ENTRY_KERNEL copy\n#define ENTRY_THREADS 128\n"));
        assert!(text.ends_with(&format!("#line 1 \"entries.cuh\"\n{}\n", ENTRIES.1)));
    }

    #[test]
    fn whatever_changes_the_machine_code_changes_the_key() {
        let base = program(&source());
        let version = Version(13000);
        let other_define = {
            let mut source = source();
            source.defines[0].1 = "32".to_string();
            program(&source)
        };
        let generated = program(&KernelSource { generated: "x".to_string(), ..source() });
        let architecture = Program::new(&source(), "sm_90a", Path::new("/cuda/include"));
        let keys = [&base, &other_define, &generated, &architecture]
            .map(|program| program.key(version))
            .into_iter()
            .chain([base.key(Version(12090))])
            .collect::<std::collections::HashSet<_>>();
        assert_eq!(keys.len(), 5);
        let elsewhere = Program::new(&source(), "sm_90", Path::new("/elsewhere"));
        assert_eq!(elsewhere.key(version), base.key(version));
    }
}
