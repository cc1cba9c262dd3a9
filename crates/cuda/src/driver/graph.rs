//! CUDA graphs: work of a stream that is recorded once and launched many times.

use std::ptr;

use cudarc::driver::sys::{self, CUstreamCaptureMode};

use super::error::{CudaError, checked};
use super::green::Home;
use super::stream::Stream;

/// Recorded work. It runs on the SMs of the partition in whose stream it was recorded, wherever it is launched.
#[derive(Debug)]
pub struct GraphExec {
    raw: sys::CUgraphExec,
    node_count: usize,
    home: Home,
}

// SAFETY: the driver allows calls on a graph from any thread; launches of one graph are ordered by the driver.
unsafe impl Send for GraphExec {}
// SAFETY: as above; no field changes.
unsafe impl Sync for GraphExec {}

impl GraphExec {
    /// Adds the recorded work to a stream.
    pub fn launch(&self, stream: &Stream) -> Result<(), CudaError> {
        self.home.context().bind_to_thread()?;
        // SAFETY: the graph and the stream live; who recorded the work promised that what it uses does too.
        unsafe { checked!(cuGraphLaunch(self.raw, stream.raw())) }
    }

    /// How many launches and copies it has.
    pub fn node_count(&self) -> usize {
        self.node_count
    }
}

impl Drop for GraphExec {
    fn drop(&mut self) {
        // SAFETY: the handle is this graph's own; the driver frees it when it no longer runs. Fields are dropped after
        // it, so the context outlives it.
        unsafe { sys::cuGraphExecDestroy(self.raw) };
    }
}

/// Records what `record` adds to the stream it is given, and runs none of it. That stream is another one of the same
/// partition as `stream`, so that what others add to `stream` meanwhile runs as ever. Where `record` fails or panics,
/// nothing of what was recorded is left.
pub fn capture<E: From<CudaError>>(
    stream: &Stream,
    record: impl FnOnce(&Stream) -> Result<(), E>,
) -> Result<GraphExec, E> {
    let recorded = stream.beside()?;
    let _entered = recorded.enter()?;
    let capture = Capture::begin(&recorded)?;
    record(&recorded)?;
    let graph = capture.end()?;
    Ok(graph.instantiate(&recorded)?)
}

/// A stream that records; it stops when this is dropped.
struct Capture<'a> {
    stream: &'a Stream,
    has_ended: bool,
}

impl<'a> Capture<'a> {
    fn begin(stream: &'a Stream) -> Result<Self, CudaError> {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream lives, and `drop` ends what is begun here.
        unsafe { checked!(cuStreamBeginCapture_v2(stream.raw(), mode)) }?;
        Ok(Self { stream, has_ended: false })
    }

    fn end(mut self) -> Result<Graph, CudaError> {
        self.has_ended = true;
        end_capture(self.stream)
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            // What was recorded is of no use, and the error that led here is the one to report.
            let _ = end_capture(self.stream);
        }
    }
}

fn end_capture(stream: &Stream) -> Result<Graph, CudaError> {
    let mut graph = Graph(ptr::null_mut());
    // SAFETY: the stream is recording, and the driver writes one handle, or null where recording failed.
    unsafe { checked!(cuStreamEndCapture(stream.raw(), &mut graph.0)) }?;
    Ok(graph)
}

/// Recorded work that cannot be launched yet.
struct Graph(sys::CUgraph);

impl Graph {
    fn instantiate(&self, stream: &Stream) -> Result<GraphExec, CudaError> {
        let mut node_count = 0;
        // SAFETY: the graph lives; without a place for nodes, the driver writes their number.
        unsafe { checked!(cuGraphGetNodes(self.0, ptr::null_mut(), &mut node_count)) }?;
        let mut raw = ptr::null_mut();
        // SAFETY: the graph lives, and the driver writes one handle, which `GraphExec` destroys.
        unsafe { checked!(cuGraphInstantiateWithFlags(&mut raw, self.0, 0)) }?;
        let executable = GraphExec { raw, node_count, home: stream.home().clone() };
        // SAFETY: both live. What is uploaded now need not be at the first launch.
        unsafe { checked!(cuGraphUpload(executable.raw, stream.raw())) }?;
        stream.synchronize()?;
        Ok(executable)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the handle is this graph's own; executables made of it do not need it.
            unsafe { sys::cuGraphDestroy(self.0) };
        }
    }
}
