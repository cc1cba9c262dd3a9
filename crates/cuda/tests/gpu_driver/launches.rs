//! Launches: in order, with clusters, with all the shared memory, and measured.

use weft_cuda::driver::{
    CudaError, DeviceBuffer, Event, LaunchShape, Stream, UnitTable, encode_tensor_map,
};
use weft_cuda::{Argument, Copied, Storage, TensorMap};

use crate::gpu::{Gpu, gpu, start, words};

fn read_words(buffer: &DeviceBuffer) -> Vec<u32> {
    let mut bytes = vec![0; buffer.size_bytes()];
    buffer.read(0, &mut bytes).unwrap();
    words(&bytes)
}

#[test]
fn dependent_launches_see_what_their_predecessors_wrote() {
    let Some(gpu) = gpu() else { return };
    const COUNT: u32 = 100_000;
    const LAUNCHES: u32 = 50;
    let kernel = gpu.kernel("advance");
    let stream = Stream::new(&gpu.context).unwrap();
    let buffer = DeviceBuffer::zeroed(&gpu.context, 4 * COUNT as usize).unwrap();
    let is_dependent = gpu.context.chip().is_hopper_or_later();
    let shape = LaunchShape { is_dependent, ..LaunchShape::linear(132, 256) };
    for added in 0..LAUNCHES {
        start(&stream, &kernel, &shape, buffer.address(), &[COUNT, added]).unwrap();
    }
    stream.synchronize().unwrap();
    let expected = (0..LAUNCHES).fold(0u32, |x, added| x.wrapping_mul(3).wrapping_add(added));
    assert_eq!(read_words(&buffer), vec![expected; COUNT as usize]);
}

#[test]
fn clusters_and_shared_memory_are_what_was_asked_for() {
    let Some(gpu) = gpu() else { return };
    let stream = Stream::new(&gpu.context).unwrap();
    let buffer = DeviceBuffer::zeroed(&gpu.context, 4 * 64).unwrap();
    if gpu.context.chip().is_hopper_or_later() {
        let shape = LaunchShape { cluster: [4, 1, 1], ..LaunchShape::linear(64, 32) };
        start(&stream, &gpu.kernel("note_cluster"), &shape, buffer.address(), &[]).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(read_words(&buffer), [4; 64]);
    }
    let shared_bytes = gpu.context.chip().shared_bytes_per_block;
    let shape = LaunchShape { shared_bytes, ..LaunchShape::linear(1, 32) };
    let kernel = gpu.kernel("touch_shared");
    start(&stream, &kernel, &shape, buffer.address(), &[shared_bytes]).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(read_words(&buffer)[0], 42);
    assert!(kernel.registers() > 0);
}

#[test]
fn arguments_that_a_kernel_does_not_take_are_refused() {
    let Some(gpu) = gpu() else { return };
    let stream = Stream::new(&gpu.context).unwrap();
    let kernel = gpu.kernel("advance");
    assert_eq!(kernel.parameter_sizes(), [8, 4, 4]);
    let buffer = DeviceBuffer::zeroed(&gpu.context, 4).unwrap();
    let shape = LaunchShape::linear(1, 32);
    let refused = start(&stream, &kernel, &shape, buffer.address(), &[1]).unwrap_err();
    assert!(matches!(refused, CudaError::Refused(_)), "{refused}");
    start(&stream, &kernel, &shape, buffer.address(), &[1, 5]).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(read_words(&buffer), [5]);
}

fn spin_between_events(gpu: &Gpu, stream: &Stream, microseconds: u32) -> f64 {
    let [before, after] = [(); 2].map(|()| Event::with_timing(stream).unwrap());
    let buffer = DeviceBuffer::zeroed(&gpu.context, 4).unwrap();
    before.record(stream).unwrap();
    let shape = LaunchShape::linear(1, 32);
    start(stream, &gpu.kernel("note_sm"), &shape, buffer.address(), &[microseconds]).unwrap();
    after.record(stream).unwrap();
    let was_reached_at_once = after.is_reached().unwrap();
    after.synchronize().unwrap();
    assert!(after.is_reached().unwrap() && before.is_reached().unwrap());
    let elapsed_us = after.elapsed_us_since(&before).unwrap();
    assert!(!was_reached_at_once || elapsed_us < 1000.0);
    elapsed_us
}

#[test]
fn events_measure_on_the_whole_gpu_and_in_a_partition() {
    let Some(gpu) = gpu() else { return };
    let table = UnitTable::split(&gpu.context, 8).unwrap();
    let partition = table.partition(&[0].into_iter().collect()).unwrap();
    let whole = Stream::new(&gpu.context).unwrap();
    for stream in [&whole, partition.stream()] {
        spin_between_events(&gpu, stream, 1);
        let elapsed_us = spin_between_events(&gpu, stream, 20_000);
        assert!((19_000.0..60_000.0).contains(&elapsed_us), "{elapsed_us} us");
    }
}

#[test]
fn a_stream_waits_for_an_event_of_another_partition() {
    let Some(gpu) = gpu() else { return };
    let table = UnitTable::split(&gpu.context, 8).unwrap();
    let [first, second] =
        [0, 1].map(|unit| table.partition(&[unit].into_iter().collect()).unwrap());
    let note = DeviceBuffer::zeroed(&gpu.context, 4).unwrap();
    let counter = DeviceBuffer::zeroed(&gpu.context, 4).unwrap();
    let shape = LaunchShape::linear(1, 32);
    let advance = gpu.kernel("advance");
    let spin = gpu.kernel("note_sm");
    start(first.stream(), &spin, &shape, note.address(), &[20_000]).unwrap();
    start(first.stream(), &advance, &shape, counter.address(), &[1, 1]).unwrap();
    let event = Event::new(first.stream()).unwrap();
    event.record(first.stream()).unwrap();
    second.stream().wait_event(&event).unwrap();
    start(second.stream(), &advance, &shape, counter.address(), &[1, 2]).unwrap();
    second.stream().synchronize().unwrap();
    assert_eq!(read_words(&counter), [5], "(0 * 3 + 1) * 3 + 2");
}

#[test]
fn tensors_are_described_or_refused() {
    let Some(gpu) = gpu() else { return };
    if !gpu.context.chip().is_hopper_or_later() {
        return;
    }
    let buffer = DeviceBuffer::zeroed(&gpu.context, 1 << 16).unwrap();
    let map = TensorMap {
        base: Box::new(Argument::Null),
        storage: Storage::F16,
        sizes: vec![128, 200],
        strides_bytes: vec![256],
        copied: Copied::Box(vec![64, 64]),
        swizzle_bytes: 128,
    };
    let encoded = encode_tensor_map(&map, buffer.address()).unwrap();
    assert!(encoded.iter().any(|&byte| byte != 0));
    let misaligned = encode_tensor_map(&map, buffer.address() + 2).unwrap_err();
    assert!(matches!(misaligned, CudaError::Call(_)), "{misaligned}");
    let without_strides = TensorMap { strides_bytes: Vec::new(), ..map };
    assert!(matches!(
        encode_tensor_map(&without_strides, buffer.address()),
        Err(CudaError::Refused(_))
    ));
}
