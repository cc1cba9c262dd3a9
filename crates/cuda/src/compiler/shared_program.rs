//! The text of a launch that computes problems of several kernels: each kernel's template in a namespace of its own, and a kernel
//! that calls the one that each block belongs to.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::program::{define, numbered};
use crate::launch::{Shared, SharedKernel};

/// What follows `shared_launch.cuh`.
pub(super) fn shared_text(shared: &Shared, entry: &str) -> String {
    let threads = shared.kernels.iter().map(|kernel| kernel.threads).max().unwrap_or(1);
    let mut kernels = String::new();
    let mut calls = String::new();
    let mut structure = String::new();
    let mut first = 0;
    for (number, kernel) in shared.kernels.iter().enumerate() {
        let name = &kernel.source.entry;
        let last = *firsts(kernel, first).last().unwrap_or(&first);
        kernels += &in_namespace(number, kernel, first);
        let _ = writeln!(
            structure,
            "    HostParameters<decltype(kernel{number}::{name})> of{number}[{}];",
            kernel.grids.len()
        );
        // Threads that a problem has no use for end at once: barriers wait for those that are left.
        let _ = writeln!(
            calls,
            "    if (blockIdx.x < {last}) {{\n        \
                 if (threadIdx.x >= {}) return;\n        \
                 u32 number = kernel{number}::own_blocks().number;\n        \
                 return call_kernel<kernel{number}::Call>(parameters.of{number}[number], 0);\n    \
             }}",
            kernel.threads
        );
        first = last;
    }
    let launched = format!(
        "struct SharedParameters {{\n{structure}}};\n\
         static_assert(sizeof(SharedParameters) == {}, \"the host lays parameters out otherwise\");\n\n\
         extern \"C\" __global__ void __launch_bounds__({threads}) {entry}(const __grid_constant__ SharedParameters parameters) {{\n\
         {calls}}}\n",
        shared.parameter_bytes
    );
    kernels + &numbered(("shared launch", &launched))
}

/// Where the blocks of each problem begin, and where those of the last end.
fn firsts(kernel: &SharedKernel, first: u32) -> Vec<u32> {
    let mut firsts = vec![first];
    for grid in &kernel.grids {
        firsts.push(firsts[firsts.len() - 1] + grid.iter().product::<u32>());
    }
    firsts
}

/// A kernel's template, with what is its own defined before it and nothing of it left after it.
fn in_namespace(number: usize, kernel: &SharedKernel, first: u32) -> String {
    let SharedKernel { source, threads, grids } = kernel;
    let mut head = format!("namespace kernel{number} {{\nDEVICE Blocks own_blocks() {{\n");
    let problems = grids.iter().zip(firsts(kernel, first)).enumerate();
    for (problem, ([x, y, _], first)) in problems.rev() {
        let condition =
            if problem > 0 { format!("if (blockIdx.x >= {first}) ") } else { String::new() };
        let _ = writeln!(head, "    {condition}return {{{problem}, {first}, {x}, {y}}};");
    }
    head += "}\n";
    let own = ("BLOCK_THREADS", threads.to_string());
    let defines: String = source.defines.iter().chain([&own]).map(define).collect();
    let call = format!(
        "struct Call {{\n    template <typename... P> static DEVICE void call(const P &...parameters) {{ {}(parameters...); }}\n}};\n}}\n",
        source.entry
    );
    let given: BTreeSet<&str> = source.defines.iter().map(|(name, _)| *name).collect();
    let inside = [&source.generated, source.text].into_iter().flat_map(defined);
    let names: BTreeSet<&str> = inside.chain(given).chain([own.0]).collect();
    let undefines: String = names.iter().map(|name| format!("#undef {name}\n")).collect();
    let parts = [
        ("blocks", head.as_str()),
        ("parameters", &defines),
        ("generated", &source.generated),
        (source.template, source.text),
        ("call", &call),
        ("end", &undefines),
    ];
    parts.map(numbered).concat()
}

/// The names that a text defines.
fn defined(text: &str) -> impl Iterator<Item = &str> {
    let names = text.lines().filter_map(|line| line.trim_start().strip_prefix("#define "));
    names.map(|rest| {
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let rest = rest.trim_start();
        &rest[..rest.find(|letter| !is_name(letter)).unwrap_or(rest.len())]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::KernelSource;

    fn kernel(name: &'static str, text: &'static str, grids: &[[u32; 3]]) -> SharedKernel {
        let defines = vec![("TILE", "64".to_string())];
        let source = KernelSource::new("k.cu", text, name, defines);
        SharedKernel { source, threads: 128, grids: grids.to_vec() }
    }

    #[test]
    fn nothing_that_a_template_defines_reaches_the_next() {
        let text = "#define LANES (TILE / 8)\n  #define AT(i) i\n#define BARE";
        assert_eq!(defined(text).collect::<Vec<_>>(), ["LANES", "AT", "BARE"]);
        let text = in_namespace(3, &kernel("k", text, &[[1; 3]]), 0);
        assert!(text.starts_with("#line 1 \"blocks\"\nnamespace kernel3 {\n"), "{text}");
        let end = text.split_once("#line 1 \"end\"\n").unwrap().1;
        assert_eq!(
            end,
            "#undef AT\n#undef BARE\n#undef BLOCK_THREADS\n#undef LANES\n#undef TILE\n\n"
        );
    }

    #[test]
    fn blocks_of_problems_follow_each_other() {
        let two = kernel("k", "", &[[4, 3, 2], [5, 1, 1]]);
        let text = in_namespace(0, &two, 10);
        let blocks = "    if (blockIdx.x >= 34) return {1, 34, 5, 1};\n    return {0, 10, 4, 3};\n";
        assert!(text.contains(blocks), "{text}");
        let one = kernel("other", "", &[[7, 1, 1]]);
        let shared = Shared { kernels: vec![two, one], parameter_bytes: 48 };
        let text = shared_text(&shared, "launched");
        assert!(text.contains("if (blockIdx.x < 29) {\n"), "{text}");
        assert!(text.contains("if (blockIdx.x < 36) {\n"), "{text}");
        assert!(text.contains("HostParameters<decltype(kernel0::k)> of0[2];"), "{text}");
        assert!(text.contains("sizeof(SharedParameters) == 48"), "{text}");
    }
}
