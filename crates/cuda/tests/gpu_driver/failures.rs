//! What goes wrong on a GPU is a typed error, and what can go on does.

use std::env;
use std::process::Command;

use weft_cuda::KernelSource;
use weft_cuda::driver::{Context, CudaError, DeviceBuffer, LaunchShape, Stream, UnitTable};
use weft_device::UnitSet;

use crate::gpu::{gpu, source, start};

#[test]
fn a_kernel_that_does_not_compile_is_named_and_others_still_do() {
    let Some(gpu) = gpu() else { return };
    let broken = KernelSource::new("broken.cu", "this is no kernel", "broken", Vec::new());
    let fine = source("advance");
    for error in [
        gpu.kernels.get(&broken).unwrap_err(),
        gpu.kernels.prepare_all(&[&fine, &broken]).unwrap_err(),
    ] {
        let CudaError::Compile(failure) = error else { panic!("not a compile error: {error}") };
        assert_eq!(failure.template, "broken.cu");
        assert!(failure.log.contains("broken.cu(1)"), "{}", failure.log);
    }
    gpu.kernels.prepare_all(&[&fine, &fine]).unwrap();
    let missing = KernelSource { entry: "no_such_kernel", ..fine };
    let error = gpu.kernels.get(&missing).unwrap_err();
    assert!(
        matches!(&error, CudaError::Call(failed) if failed.code.contains("NOT_FOUND")),
        "{error}"
    );
}

#[test]
fn gpus_and_units_that_do_not_exist_are_refused() {
    let Some(gpu) = gpu() else { return };
    let count = Context::device_count().unwrap();
    let error = Context::open(count).unwrap_err();
    assert!(matches!(error, CudaError::NoDevice { ordinal, .. } if ordinal == count), "{error}");
    let table = UnitTable::split(&gpu.context, 8).unwrap();
    let beyond: UnitSet = [table.layout().len()].into_iter().collect();
    for units in [beyond, UnitSet::default()] {
        assert!(matches!(table.partition(&units), Err(CudaError::Refused(_))));
    }
}

/// What the test below is given in the process that it starts.
const CHILD: &str = "WEFT_TEST_LOSES_THE_GPU";

/// A lost GPU is lost for the whole process, so another process loses it.
#[test]
fn a_lost_gpu_is_told_apart_and_the_process_lives_on() {
    if env::var_os(CHILD).is_some() {
        return lose_the_gpu();
    }
    let Some(_gpu) = gpu() else { return };
    let name = "failures::a_lost_gpu_is_told_apart_and_the_process_lives_on";
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .env("WEFT_REQUIRE_GPU", "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("the GPU is lost"), "{told}");
}

fn lose_the_gpu() {
    let gpu = gpu().unwrap();
    let stream = Stream::new(&gpu.context).unwrap();
    let nowhere = 64;
    let kernel = gpu.kernel("advance");
    let kept = DeviceBuffer::zeroed(&gpu.context, 64).unwrap();
    start(&stream, &kernel, &LaunchShape::linear(1, 32), nowhere, &[1, 1]).unwrap();
    let error = stream.synchronize().unwrap_err();
    assert!(error.is_lost(), "{error}");
    let later = DeviceBuffer::zeroed(&gpu.context, 64).unwrap_err();
    assert!(later.is_lost(), "{later}");
    assert!(kept.read(0, &mut [0; 64]).is_err());
    eprintln!("{error}");
}
