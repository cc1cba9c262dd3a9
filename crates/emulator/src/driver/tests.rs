//! Calls as programs make them: copies and fills, done at once or recorded.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::ptr;

use super::context::{cuCtxCreate_v4, cuCtxSetCurrent};
use super::copy::{
    cuMemcpyDtoDAsync_v2, cuMemcpyDtoHAsync_v2, cuMemcpyHtoDAsync_v2, cuMemsetD8Async,
};
use super::device::cuInit;
use super::error::Code;
use super::event::{
    cuEventCreate, cuEventElapsedTime_v2, cuEventQuery, cuEventRecord, cuEventSynchronize,
};
use super::graph::{cuGraphGetNodes, cuGraphInstantiateWithFlags, cuGraphLaunch};
use super::handles::Handle;
use super::memory::{cuMemAlloc_v2, cuMemFree_v2};
use super::stream::{
    cuStreamBeginCapture_v2, cuStreamCreate, cuStreamEndCapture, cuStreamSynchronize,
    cuStreamWaitEvent,
};

const SIZE_BYTES: usize = 4;
const OWN_THREAD: u32 = 1;

/// The place that a call writes its result to, as what was written.
fn made<T>(empty: T, call: impl FnOnce(*mut T) -> Code) -> T {
    let mut place = empty;
    assert_eq!(call(&mut place), Code::Success);
    place
}

/// Makes a context apart from others current on this thread.
fn enter_context() {
    // SAFETY: it takes no pointers.
    assert_eq!(unsafe { cuInit(0) }, Code::Success);
    // SAFETY: the place is one for a handle, and there are no parameters.
    made(Handle::NULL, |place| unsafe { cuCtxCreate_v4(place, ptr::null_mut(), 0, 0) });
}

fn stream() -> Handle {
    // SAFETY: the place is one for a handle.
    made(Handle::NULL, |place| unsafe { cuStreamCreate(place, 1) })
}

fn event() -> Handle {
    // SAFETY: the place is one for a handle.
    made(Handle::NULL, |place| unsafe { cuEventCreate(place, 0) })
}

fn buffer() -> u64 {
    // SAFETY: the place is one for an address.
    made(0, |place| unsafe { cuMemAlloc_v2(place, SIZE_BYTES) })
}

fn fill(stream: Handle, address: u64, byte: u8) -> Code {
    // SAFETY: what is no memory is refused.
    unsafe { cuMemsetD8Async(address, byte, SIZE_BYTES, stream) }
}

fn copy(stream: Handle, to: u64, from: u64) -> Code {
    // SAFETY: what is no memory is refused.
    unsafe { cuMemcpyDtoDAsync_v2(to, from, SIZE_BYTES, stream) }
}

fn read(stream: Handle, address: u64) -> [u8; SIZE_BYTES] {
    let place = &mut [0u8; SIZE_BYTES];
    // SAFETY: there is place for as many bytes.
    let read =
        unsafe { cuMemcpyDtoHAsync_v2(place.as_mut_ptr().cast(), address, SIZE_BYTES, stream) };
    assert_eq!(read, Code::Success);
    *place
}

fn begin(stream: Handle) {
    // SAFETY: it takes no pointers.
    assert_eq!(unsafe { cuStreamBeginCapture_v2(stream, OWN_THREAD) }, Code::Success);
}

fn end(stream: Handle) -> Handle {
    // SAFETY: the place is one for a handle.
    made(Handle::NULL, |place| unsafe { cuStreamEndCapture(stream, place) })
}

fn executable(graph: Handle) -> Handle {
    // SAFETY: the place is one for a handle.
    made(Handle::NULL, |place| unsafe { cuGraphInstantiateWithFlags(place, graph, 0) })
}

/// A call without pointers.
macro_rules! call {
    ($name:ident($($argument:expr),*)) => {
        // SAFETY: it takes no pointers, and handles may be any numbers.
        unsafe { $name($($argument),*) }
    };
}

#[test]
fn a_graph_of_two_streams_is_done_in_the_order_of_calls_as_often_as_it_is_launched() {
    enter_context();
    let [main, side] = [stream(), stream()];
    let [forked, ended] = [event(), event()];
    let [from, to] = [buffer(), buffer()];
    assert_eq!(read(main, from), [0xFF; SIZE_BYTES]);

    begin(main);
    assert_eq!(fill(main, from, 1), Code::Success);
    assert_eq!(call!(cuEventRecord(forked, main)), Code::Success);
    assert_eq!(call!(cuEventQuery(forked)), Code::CapturedEvent);
    assert_eq!(call!(cuStreamWaitEvent(side, forked, 0)), Code::Success);
    assert_eq!(copy(side, to, from), Code::Success);
    assert_eq!(call!(cuEventRecord(ended, side)), Code::Success);
    assert_eq!(call!(cuStreamWaitEvent(main, ended, 0)), Code::Success);
    assert_eq!(fill(main, from, 2), Code::Success);
    let graph = end(main);

    assert_eq!((read(main, from), read(main, to)), ([0xFF; SIZE_BYTES], [0xFF; SIZE_BYTES]));
    // SAFETY: the place is one for a number.
    let nodes = made(0, |place| unsafe { cuGraphGetNodes(graph, ptr::null_mut(), place) });
    assert_eq!(nodes, 3);
    let executable = executable(graph);
    for _ in 0..2 {
        assert_eq!(fill(side, to, 9), Code::Success);
        assert_eq!(call!(cuGraphLaunch(executable, side)), Code::Success);
        assert_eq!((read(main, from), read(main, to)), ([2; SIZE_BYTES], [1; SIZE_BYTES]));
    }
}

#[test]
fn who_asks_for_an_event_is_told_late_and_who_waits_is_not() {
    enter_context();
    let (main, [first, second]) = (stream(), [event(), event()]);
    for mark in [first, second] {
        assert_eq!(call!(cuEventQuery(mark)), Code::Success, "it marks nothing");
        assert_eq!(call!(cuEventRecord(mark, main)), Code::Success);
    }
    // Another test may have waited for the device in between.
    assert_eq!(call!(cuEventSynchronize(second)), Code::Success);
    for mark in [first, second] {
        assert_eq!(call!(cuEventQuery(mark)), Code::Success);
    }
    let asked: Vec<Code> = (0..1000)
        .map(|_| {
            assert_eq!(call!(cuEventRecord(first, main)), Code::Success);
            let asked = call!(cuEventQuery(first));
            assert_eq!(call!(cuEventQuery(first)), Code::Success);
            asked
        })
        .collect();
    assert!(asked.contains(&Code::NotReady));
}

#[test]
fn nothing_can_be_waited_for_or_allocated_while_recording() {
    enter_context();
    let [main, address] = [(); 2].map(|()| stream()).map(|stream| (stream, buffer()));
    let ((main, kept), (_, other)) = (main, address);
    let waits: [&dyn Fn() -> Code; 3] = [
        &|| call!(cuStreamSynchronize(main)),
        &|| call!(cuMemFree_v2(other)),
        // SAFETY: the place is one for an address.
        &|| unsafe { cuMemAlloc_v2(&mut 0, 1) },
    ];
    for wait in waits {
        begin(main);
        assert_eq!(fill(main, kept, 1), Code::Success);
        assert_eq!(wait(), Code::CaptureUnsupported);
        assert_eq!(fill(main, kept, 1), Code::CaptureInvalidated);
        let mut graph = main;
        // SAFETY: the place is one for a handle.
        let ended = unsafe { cuStreamEndCapture(main, &mut graph) };
        assert_eq!((ended, graph), (Code::CaptureInvalidated, Handle::NULL));
        assert_eq!(fill(main, kept, 2), Code::Success);
        assert_eq!(read(main, kept), [2; SIZE_BYTES]);
    }
}

#[test]
fn what_uses_memory_that_is_gone_ends_the_context_and_no_other() {
    enter_context();
    let (main, kept, lost) = (stream(), buffer(), buffer());
    begin(main);
    assert_eq!(copy(main, kept, lost), Code::Success);
    let executable = executable(end(main));
    assert_eq!(call!(cuMemFree_v2(lost)), Code::Success);
    assert_eq!(copy(main, kept, lost), Code::InvalidValue, "it is known at once");
    assert_eq!(call!(cuStreamSynchronize(main)), Code::Success);
    assert_eq!(call!(cuGraphLaunch(executable, main)), Code::Success, "it shows later");
    for answer in [
        call!(cuStreamSynchronize(main)),
        fill(main, kept, 1),
        call!(cuMemFree_v2(kept)),
        call!(cuGraphLaunch(executable, main)),
    ] {
        assert_eq!(answer, Code::IllegalAddress);
    }
    enter_context();
    assert_eq!(read(stream(), buffer()), [0xFF; SIZE_BYTES]);
}

#[test]
fn numbers_that_are_no_handles_and_places_that_are_none_are_refused() {
    enter_context();
    let (main, mark, kept) = (stream(), event(), buffer());
    for wrong in [mark, Handle::new()] {
        assert_eq!(call!(cuStreamSynchronize(wrong)), Code::InvalidHandle);
        assert_eq!(call!(cuGraphLaunch(wrong, main)), Code::InvalidHandle);
        assert_eq!(call!(cuCtxSetCurrent(wrong)), Code::InvalidContext);
    }
    assert_eq!(fill(main, kept + 1, 0), Code::InvalidValue, "it ends past the memory");
    // SAFETY: a null pointer is refused.
    let answers = unsafe {
        [
            cuMemAlloc_v2(ptr::null_mut(), 4),
            cuStreamCreate(ptr::null_mut(), 1),
            cuMemcpyHtoDAsync_v2(kept, ptr::null(), SIZE_BYTES, main),
        ]
    };
    assert_eq!(answers, [Code::InvalidValue; 3]);
    // SAFETY: the place is one for a number.
    let elapsed = unsafe { cuEventElapsedTime_v2(&mut 0.0, mark, mark) };
    assert_eq!(elapsed, Code::InvalidHandle, "it was not recorded");
    assert_eq!(call!(cuCtxSetCurrent(Handle::NULL)), Code::Success);
    assert_eq!(call!(cuMemFree_v2(kept)), Code::InvalidContext);
}

/// The words in the Rust files below a folder that are names of the driver's functions, before `(`.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let words = text.split(|letter: char| {
                !letter.is_ascii_alphanumeric() && letter != '_' && letter != '('
            });
            let called = words.flat_map(|word| {
                let mut parts: Vec<&str> = word.split('(').collect();
                parts.pop();
                parts
            });
            let is_function = |name: &&str| {
                let mut rest = name.strip_prefix("cu").unwrap_or_default().chars();
                rest.next().is_some_and(|letter| letter.is_ascii_uppercase())
            };
            found.extend(called.filter(is_function).map(str::to_string));
        }
    }
}

#[test]
fn every_function_of_the_driver_that_is_called_is_here() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let [mut called, mut here] = [BTreeSet::new(), BTreeSet::new()];
    functions(&crates.join("cuda/src"), &mut called);
    functions(&crates.join("emulator/src/driver"), &mut here);
    assert!(called.len() > 60, "{called:?}");
    let missing: Vec<&String> = called.difference(&here).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
