//! Planned launches give their kernels parameters of the sizes that these take. Needs NVRTC, and no GPU: machine code
//! says what its kernels take. Where NVRTC is absent the test passes, unless `WEFT_REQUIRE_NVRTC` is `1`.

use std::collections::HashMap;

use super::zoo::{plan, plan_choosing, specialised};
use crate::choosing::Choosing;
use crate::compiler::Compiler;
use crate::launch::KernelSource;
use crate::plan::entries::{EntryBases, EntryBinder};
use crate::plan::place::Bases;
use crate::plan::steps::{Operand, Stage};
use crate::{Chip, Precision};

/// Models that together have most kinds of operators.
const MODELS: [&str; 5] =
    ["tiny_mobilenet_v3", "tiny_resnet", "tiny_densenet", "tiny_bert", "tiny_gpt2"];

/// The compiler, or `None` where there is none and none is required.
pub(super) fn compiler() -> Option<Compiler> {
    match Compiler::of_process() {
        Ok(compiler) => Some(compiler),
        Err(why) => {
            let is_required = std::env::var("WEFT_REQUIRE_NVRTC").is_ok_and(|value| value == "1");
            assert!(!is_required, "NVRTC is required: {why}");
            None
        }
    }
}

#[test]
fn launches_give_kernels_what_they_take() {
    let Some(compiler) = compiler() else { return };
    let mut given: HashMap<KernelSource, Vec<usize>> = HashMap::new();
    for (name, precision) in MODELS.into_iter().zip(Precision::ALL.into_iter().cycle()) {
        let graph = specialised(name, 2, 8);
        let plan = plan(&graph, 32, precision);
        for launch in plan.stages.iter().flat_map(Stage::launches) {
            let sizes = launch.operands.iter().map(size_bytes).collect();
            given.insert(launch.launch.source.clone(), sizes);
        }
        let of_entries = plan_choosing(&graph, 8, precision, Choosing::ForEntries(4));
        if of_entries.bar_to_entries().is_none() {
            let bases = EntryBases {
                first: Bases { inputs: vec![0; 8], outputs: vec![0; 8], ..Bases::default() },
                arena_step: 0,
                input_step: 0,
                output_step: 0,
                counter_step: 0,
                table: 0,
                descriptions: 0,
                capacity: 4,
            };
            let mut binder = EntryBinder::new(&bases, &|_, _| Ok([0; 128]));
            for launch in of_entries.stages.iter().flat_map(Stage::launches) {
                let launch = binder.bind(launch).unwrap();
                let sizes = launch.operands.iter().map(size_bytes).collect();
                given.insert(launch.launch.source.clone(), sizes);
            }
        }
    }
    let sources: Vec<&KernelSource> = given.keys().collect();
    let codes = compiler.compile_all(&sources, |source| Chip::H200.architecture(source.is_exact));
    for (source, code) in sources.into_iter().zip(codes) {
        let taken = parameter_sizes(&code.unwrap(), source.entry_point());
        assert_eq!(given[source], taken, "{} of {}", source.entry, source.template);
    }
}

pub(super) fn size_bytes(operand: &Operand) -> usize {
    match operand {
        Operand::Address(_) => 8,
        Operand::Addresses(places) => 8 * places.len(),
        Operand::Fault { .. } => 16,
        Operand::Bytes(bytes) => bytes.len(),
        Operand::TensorMap(..) => 128,
    }
}

/// The sizes of a kernel's parameters, as its machine code states them: a 64-bit ELF file with a section of
/// attributes per kernel.
pub(crate) fn parameter_sizes(code: &[u8], entry: &str) -> Vec<usize> {
    /// An attribute whose payload follows, after the payload's length.
    const SIZED: u8 = 4;
    /// The attribute that describes one parameter.
    const PARAMETER: u8 = 0x17;
    let number = |at: usize, len: usize| -> usize {
        code[at..at + len].iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte))
    };
    let (headers, header_size, count, names) =
        (number(0x28, 8), number(0x3A, 2), number(0x3C, 2), number(0x3E, 2));
    let content = |section: usize| {
        let header = headers + section * header_size;
        number(header + 0x18, 8)..number(header + 0x18, 8) + number(header + 0x20, 8)
    };
    let name = |section: usize| {
        let start = content(names).start + number(headers + section * header_size, 4);
        code[start..].split(|&byte| byte == 0).next().unwrap()
    };
    let wanted = format!(".nv.info.{entry}");
    let section = (0..count).find(|&section| name(section) == wanted.as_bytes()).unwrap();
    let mut sizes = Vec::new();
    let mut at = content(section).start;
    while at < content(section).end {
        let (format, attribute) = (code[at], code[at + 1]);
        if format == SIZED && attribute == PARAMETER {
            let (ordinal, packed) = (number(at + 8, 2), number(at + 12, 4));
            sizes.push((ordinal, packed >> 18));
        }
        at += if format == SIZED { 4 + number(at + 2, 2) } else { 4 };
    }
    sizes.sort_unstable();
    sizes.into_iter().map(|(_, size)| size).collect()
}
