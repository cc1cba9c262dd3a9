//! Compiling kernels with NVRTC, which needs no GPU. Where NVRTC is absent the tests say so and pass, unless
//! `WEFT_REQUIRE_NVRTC` is `1`.
#![allow(clippy::print_stderr)]

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process;

use weft_cuda::compiler::{Compiler, KernelCache};
use weft_cuda::driver::CudaError;
use weft_cuda::library::Libraries;
use weft_cuda::{KernelSource, sample_sources};

/// The architectures that kernels must compile for: Ampere, Hopper and Blackwell.
const ARCHITECTURES: [&str; 3] = ["sm_80", "sm_90", "sm_100"];

/// How machine code starts.
const ELF: &[u8] = b"\x7fELF";

const COPY: &str = "extern \"C\" __global__ void copy(const STORAGE* from, STORAGE* to) {
    await_predecessor();
    to[threadIdx.x] = from[threadIdx.x];
}";

fn compiler(cache: Option<KernelCache>) -> Option<Compiler> {
    match Compiler::new(Libraries::of_process(), cache) {
        Ok(compiler) => Some(compiler),
        Err(why) => {
            let is_required = env::var("WEFT_REQUIRE_NVRTC").is_ok_and(|value| value == "1");
            assert!(!is_required, "NVRTC is required: {why}");
            eprintln!("skipped: {why}");
            None
        }
    }
}

fn copy_of(storage: &str) -> KernelSource {
    KernelSource::new("copy.cu", COPY, "copy", vec![("STORAGE", storage.to_string())])
}

#[test]
fn kernels_become_machine_code_for_each_architecture() {
    let Some(compiler) = compiler(None) else { return };
    for architecture in ARCHITECTURES {
        let code = compiler.compile(&copy_of("__half"), architecture).unwrap();
        assert!(code.starts_with(ELF), "{architecture}");
    }
}

#[test]
fn the_message_names_the_kernel_its_parameters_and_the_templates_own_line() {
    let Some(compiler) = compiler(None) else { return };
    let error = compiler.compile(&copy_of("no_such_type"), "sm_90").unwrap_err();
    let CudaError::Compile(failure) = &error else { panic!("not a compile error: {error}") };
    assert_eq!((&*failure.template, &*failure.entry), ("copy.cu", "copy"));
    assert_eq!(failure.defines, [("STORAGE".to_string(), "no_such_type".to_string())]);
    assert!(failure.log.contains("copy.cu(1): error: identifier \"no_such_type\""), "{error}");
}

#[test]
fn code_that_is_cached_is_not_compiled_again_and_damaged_code_is() {
    let folder: PathBuf = env::temp_dir().join(format!("weft-compiler-{}", process::id()));
    let _ = fs::remove_dir_all(&folder);
    let open = || compiler(Some(KernelCache::new(folder.clone(), 1 << 20)));
    let Some(first) = open() else { return };
    let source = copy_of("float");
    let code = first.compile(&source, "sm_90").unwrap();
    let files = || -> Vec<PathBuf> {
        fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect()
    };
    let [file] = &files()[..] else { panic!("not one file: {:?}", files()) };

    let planted = KernelCache::new(folder.join("planted"), 1 << 20);
    planted.write(0, b"planted");
    let planted = fs::read_dir(folder.join("planted")).unwrap().next().unwrap().unwrap().path();
    fs::copy(planted, file).unwrap();
    assert_eq!(open().unwrap().compile(&source, "sm_90").unwrap(), b"planted");

    fs::write(file, "damaged").unwrap();
    assert_eq!(open().unwrap().compile(&source, "sm_90").unwrap(), code);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn many_kernels_are_compiled_at_once_and_come_in_order() {
    let Some(compiler) = compiler(None) else { return };
    let sources = ["float", "no_such_type", "__half", "int"].map(copy_of);
    let sources: Vec<&KernelSource> = sources.iter().collect();
    let together = compiler.compile_all(&sources, |_| "sm_90".to_string());
    assert_eq!(together.len(), sources.len());
    for (source, result) in sources.iter().zip(&together) {
        match (result, compiler.compile(source, "sm_90")) {
            (Ok(together), Ok(alone)) => assert_eq!(*together, alone),
            (Err(CudaError::Compile(_)), Err(CudaError::Compile(_))) => {}
            _ => panic!("{source:?} compiles alone or among others, and not both"),
        }
    }
    assert_eq!(together.iter().filter(|result| result.is_err()).count(), 1);
}

#[test]
fn the_kernels_of_the_tests_on_a_gpu_compile() {
    let Some(compiler) = compiler(None) else { return };
    let text = include_str!("gpu_driver/kernels.cu");
    let source = KernelSource::new("kernels.cu", text, "advance", Vec::new());
    for architecture in ARCHITECTURES {
        compiler.compile(&source, architecture).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn every_kernel_compiles_for_every_architecture() {
    let Some(compiler) = compiler(None) else { return };
    let sources = sample_sources();
    for architecture in ARCHITECTURES {
        // Instructions of one architecture alone are those of Hopper.
        let is_for = |source: &&KernelSource| !source.is_exact || architecture == "sm_90";
        let sources: Vec<&KernelSource> = sources.iter().filter(is_for).collect();
        let exact = |source: &KernelSource| if source.is_exact { "a" } else { "" };
        let name = |source: &KernelSource| format!("{architecture}{}", exact(source));
        for result in compiler.compile_all(&sources, name) {
            result.unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
