//! Memory: what is written is what is read, growth moves nothing, and too much is refused.

use weft_cuda::driver::{
    CudaError, DeviceBuffer, GrowableBuffer, PinnedBuffer, Stream, copy_to_device, copy_to_host,
    fill,
};

use crate::gpu::gpu;

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 31 + index / 251) as u8).collect()
}

#[test]
fn what_is_written_is_read_back() {
    let Some(gpu) = gpu() else { return };
    let bytes = pattern(1_000_003);
    let mut buffer = DeviceBuffer::from_bytes(&gpu.context, &bytes).unwrap();
    let mut back = vec![0; bytes.len()];
    buffer.read(0, &mut back).unwrap();
    assert_eq!(back, bytes);

    buffer.write(7, b"weft").unwrap();
    let mut part = [0; 6];
    buffer.read(6, &mut part).unwrap();
    assert_eq!(part[..], [&bytes[6..7], b"weft", &bytes[11..12]].concat());

    let beyond = buffer.write(bytes.len() - 1, b"ab").unwrap_err();
    assert!(matches!(beyond, CudaError::Refused(_)), "{beyond}");
    assert!(buffer.read(usize::MAX, &mut part).is_err());

    let zeroed = DeviceBuffer::zeroed(&gpu.context, 1000).unwrap();
    let mut back = vec![1; 1000];
    zeroed.read(0, &mut back).unwrap();
    assert_eq!(back, vec![0; 1000]);
    assert_eq!(DeviceBuffer::new(&gpu.context, 0).unwrap().address(), 0);
}

#[test]
fn copies_in_a_stream_keep_its_order() {
    let Some(gpu) = gpu() else { return };
    let bytes = pattern(1 << 20);
    let mut sent = PinnedBuffer::new(&gpu.context, bytes.len()).unwrap();
    assert!(sent.iter().all(|&byte| byte == 0));
    sent.copy_from_slice(&bytes);
    let mut received = PinnedBuffer::new(&gpu.context, bytes.len()).unwrap();
    let buffer = DeviceBuffer::new(&gpu.context, bytes.len()).unwrap();
    let stream = Stream::new(&gpu.context).unwrap();
    let half = bytes.len() / 2;
    // SAFETY: all ranges are inside their buffers, which live past the wait.
    unsafe {
        copy_to_device(&stream, buffer.address(), sent.as_ptr(), bytes.len()).unwrap();
        fill(&stream, buffer.address(), 9, half).unwrap();
        copy_to_host(&stream, received.as_mut_ptr(), buffer.address(), bytes.len()).unwrap();
    }
    stream.synchronize().unwrap();
    assert!(stream.is_idle().unwrap());
    assert!(received[..half].iter().all(|&byte| byte == 9));
    assert_eq!(received[half..], bytes[half..]);
}

#[test]
fn an_arena_grows_in_place() {
    let Some(gpu) = gpu() else { return };
    let mut arena = GrowableBuffer::reserve(&gpu.context, 64 << 30).unwrap();
    let address = arena.address();
    assert_eq!(arena.size_bytes(), 0);
    let bytes = pattern(3 << 20);
    arena.grow_to(bytes.len()).unwrap();
    arena.write(0, &bytes).unwrap();
    for size in [5 << 20, 200 << 20, 100 << 20] {
        arena.grow_to(size).unwrap();
        assert!(arena.size_bytes() >= size);
        assert_eq!(arena.address(), address);
    }
    let tail = arena.size_bytes() - bytes.len();
    arena.write(tail, &bytes).unwrap();
    for offset in [0, tail] {
        let mut back = vec![0; bytes.len()];
        arena.read(offset, &mut back).unwrap();
        assert!(back == bytes, "at {offset}");
    }
    let past_its_end = arena.grow_to(arena.reserved_bytes() + 1).unwrap_err();
    assert!(matches!(past_its_end, CudaError::Refused(_)), "{past_its_end}");
}

#[test]
fn too_much_memory_is_refused_and_the_next_request_works() {
    let Some(gpu) = gpu() else { return };
    let too_much = 2 * gpu.context.memory_bytes() as usize;
    let check = |error: CudaError| match error {
        CudaError::OutOfMemory { asked_bytes: asked, free_bytes } => {
            assert!(asked >= too_much as u64 && free_bytes > 0 && free_bytes < asked);
        }
        other => panic!("not for lack of memory: {other}"),
    };
    check(DeviceBuffer::new(&gpu.context, too_much).unwrap_err());
    let bytes = pattern(100);
    let buffer = DeviceBuffer::from_bytes(&gpu.context, &bytes).unwrap();
    let mut back = vec![0; 100];
    buffer.read(0, &mut back).unwrap();
    assert_eq!(back, bytes);

    let mut arena = GrowableBuffer::reserve(&gpu.context, 2 * too_much).unwrap();
    arena.grow_to(1).unwrap();
    let before = arena.size_bytes();
    check(arena.grow_to(too_much + before).unwrap_err());
    assert_eq!(arena.size_bytes(), before);
    arena.grow_to(2 * before).unwrap();
    arena.write(2 * before - bytes.len(), &bytes).unwrap();
}
