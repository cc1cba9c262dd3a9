//! Graphs: what was recorded, done again in the order of recording.

use std::ffi::{c_ulonglong, c_void};

use super::capture::Node;
use super::error::{Code, answer};
use super::handles::{Handle, Handles};
use super::operation::{Operation, perform};
use super::places::give;
use super::stream::Stream;

type Nodes = Vec<Node<Operation>>;

static GRAPHS: Handles<Nodes> = Handles::new();
static EXECUTABLES: Handles<Nodes> = Handles::new();

/// Keeps a graph for its maker.
pub(super) fn keep(nodes: Nodes) -> Handle {
    GRAPHS.keep(nodes)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuGraphGetNodes(
    graph: Handle,
    nodes: *mut *mut c_void,
    count: *mut usize,
) -> Code {
    answer(|| {
        let graph = GRAPHS.get(graph)?;
        if !nodes.is_null() {
            return Err(Code::NotSupported);
        }
        // SAFETY: the caller gives null or a place for a number.
        unsafe { give(count, graph.len()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphDestroy(graph: Handle) -> Code {
    answer(|| GRAPHS.take(graph).map(drop))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuGraphInstantiateWithFlags(
    executable: *mut Handle,
    graph: Handle,
    flags: c_ulonglong,
) -> Code {
    answer(|| {
        if executable.is_null() || flags != 0 {
            return Err(Code::InvalidValue);
        }
        let nodes = GRAPHS.get(graph)?;
        // SAFETY: the caller gives a place for a handle.
        unsafe { give(executable, EXECUTABLES.keep(nodes)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphExecDestroy(executable: Handle) -> Code {
    answer(|| EXECUTABLES.take(executable).map(drop))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphUpload(executable: Handle, stream: Handle) -> Code {
    answer(|| {
        EXECUTABLES.get(executable)?;
        Stream::of(stream).map(drop)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuGraphLaunch(executable: Handle, stream: Handle) -> Code {
    answer(|| {
        let (nodes, stream) = (EXECUTABLES.get(executable)?, Stream::of(stream)?);
        if stream.is_recording() {
            return Err(Code::NotSupported);
        }
        perform(nodes.iter().map(|node| &node.work), &stream.context.family);
        Ok(())
    })
}
