//! Products of many tenants on one GPU in f32, in each of the ways to share it: one tenant after another, side by side in
//! streams, and all of them in one launch over a table of their operands.

mod bound;
mod choosing;
mod expected;
mod seat;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use crate::compiler::{Compiler, Kernels};
use crate::driver::{Context, CudaError, DeviceBuffer, Event, GraphExec, Stream, capture};
use crate::kernels::sgemm::{MAX_TENANTS, candidates};
use crate::launch::KernelSource;

use bound::BoundProduct;
use expected::Expected;
use seat::{Operands, Seat, entry_bytes};

pub use crate::kernels::sgemm::ProductShape;
pub use expected::Deviation;

/// How tenants share the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// One after another, each in its own context; the host waits for each.
    TimeOnly,
    /// Each in a stream of its own, launched by the host.
    Streams,
    /// The same, recorded as one graph.
    Graph,
    /// All in one launch.
    SuperKernel,
}

impl Way {
    /// All ways, the slowest first.
    pub const ALL: [Self; 4] = [Self::TimeOnly, Self::Streams, Self::Graph, Self::SuperKernel];
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimeOnly => "time-only",
            Self::Streams => "space-only",
            Self::Graph => "space-only in one graph",
            Self::SuperKernel => "space-time",
        })
    }
}

/// A GPU, its kernels, and contexts for tenants that take turns.
pub struct ProductGpu {
    ordinal: usize,
    context: Arc<Context>,
    kernels: Kernels,
    apart: Vec<Arc<Context>>,
}

impl ProductGpu {
    /// Opens a GPU by its number.
    pub fn open(ordinal: usize) -> Result<Self, CudaError> {
        let context = Context::open(ordinal)?;
        let kernels = Kernels::new(context.clone(), Arc::new(Compiler::of_process()?));
        Ok(Self { ordinal, context, kernels, apart: Vec::new() })
    }

    /// Opens contexts until there are so many, or until the driver has no room for another one; how many there are.
    pub fn open_contexts(&mut self, count: usize) -> Result<usize, CudaError> {
        while self.apart.len() < count {
            match Context::open_apart(self.ordinal) {
                Ok(context) => self.apart.push(context),
                Err(error) if error.is_lost() || self.apart.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(self.apart.len())
    }

    /// The GPU.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

/// Tenants, each with a product of its own; nothing of one lies beside what is another's.
pub struct TenantProducts<'a> {
    gpu: &'a ProductGpu,
    shape: ProductShape,
    /// In the primary context, where they can run side by side.
    together: Vec<Seat>,
    /// In other contexts, in turns where there are fewer of these than tenants; empty where there are none.
    apart: Vec<Seat>,
    /// The operands of `together`, as kernels find them.
    table: DeviceBuffer,
    stream: Stream,
    expected: Vec<Expected>,
}

impl<'a> TenantProducts<'a> {
    /// Tenants with random weights and inputs, and memory for each in its own context.
    pub fn new(
        gpu: &'a ProductGpu,
        shape: ProductShape,
        tenants: usize,
    ) -> Result<Self, CudaError> {
        if !shape.is_supported() || !(1..=MAX_TENANTS).contains(&tenants) {
            return Err(CudaError::Refused(format!(
                "no kernel for {tenants} tenants with {shape:?}"
            )));
        }
        let (mut together, mut apart, mut expected) = (Vec::new(), Vec::new(), Vec::new());
        for tenant in 0..tenants {
            let operands = Operands::random(&shape, tenant as u64);
            together.push(Seat::new(&gpu.context, &shape, &operands)?);
            if !gpu.apart.is_empty() {
                let context = &gpu.apart[tenant % gpu.apart.len()];
                apart.push(Seat::new(context, &shape, &operands)?);
            }
            expected.push(Expected::new(&shape, &operands, tenant as u64));
        }
        let entries: Vec<u8> = together.iter().flat_map(entry_bytes).collect();
        let table = DeviceBuffer::from_bytes(&gpu.context, &entries)?;
        let stream = Stream::new(&gpu.context)?;
        Ok(Self { gpu, shape, together, apart, table, stream, expected })
    }

    /// The first `tenants` of them, each way with the kernel that is fastest for it.
    pub fn prepare(&self, tenants: usize) -> Result<PreparedProducts<'_>, CudaError> {
        if !(1..=self.together.len()).contains(&tenants) {
            let refusal = format!("{tenants} of {} tenants", self.together.len());
            return Err(CudaError::Refused(refusal));
        }
        let chosen = self.choose(tenants)?;
        let graph = self.record(&chosen.beside, tenants)?;
        Ok(PreparedProducts { of: self, tenants, chosen, graph })
    }

    /// How far every kernel that may be chosen is off in one launch for the first `tenants`, of whom there are so many.
    pub fn check_all(&self, tenants: usize) -> Result<Vec<(String, Deviation)>, CudaError> {
        let kernels = candidates(&self.shape, tenants, &self.gpu.context.chip());
        let sources: Vec<&KernelSource> = kernels.iter().map(|kernel| &kernel.source).collect();
        self.gpu.kernels.prepare_all(&sources)?;
        let seats = &self.together[..tenants];
        let mut found = Vec::new();
        for kernel in &kernels {
            let product = BoundProduct::new(kernel, &self.gpu.kernels)?;
            seats.iter().try_for_each(Seat::spoil)?;
            // SAFETY: the table has so many entries, and lives until the stream has been waited for.
            unsafe { product.launch(&self.stream, self.table.address(), tenants) }?;
            self.stream.synchronize()?;
            found.push((product.name.clone(), self.deviation(seats)?));
        }
        Ok(found)
    }

    /// How far the outputs of the first tenants are off.
    fn deviation(&self, seats: &[Seat]) -> Result<Deviation, CudaError> {
        let mut worst = Deviation::default();
        for (tenant, (seat, expected)) in seats.iter().zip(&self.expected).enumerate() {
            worst = worst.or_worse(expected.deviation(&seat.read()?, tenant));
        }
        Ok(worst)
    }

    /// Tenants side by side, each in its stream, as one graph.
    fn record(&self, product: &BoundProduct, tenants: usize) -> Result<GraphExec, CudaError> {
        let begin = Event::new(&self.stream)?;
        let ends = (0..tenants).map(|_| Event::new(&self.stream));
        let ends = ends.collect::<Result<Vec<Event>, CudaError>>()?;
        capture(&self.stream, |stream| {
            begin.record(stream)?;
            for (seat, end) in self.together.iter().zip(&ends) {
                seat.stream.wait_event(&begin)?;
                // SAFETY: the seat's memory and the kernel outlive the graph, which is no longer than `self` and `product`.
                unsafe { product.launch(&seat.stream, seat.table.address(), 1) }?;
                end.record(&seat.stream)?;
                stream.wait_event(end)?;
            }
            Ok(())
        })
    }
}

/// The kernel of each way.
struct Chosen {
    /// For one product that has the GPU to itself.
    alone: BoundProduct,
    /// For products side by side.
    beside: BoundProduct,
    /// For all in one launch.
    together: BoundProduct,
}

/// Tenants that are ready to run in every way.
pub struct PreparedProducts<'a> {
    of: &'a TenantProducts<'a>,
    tenants: usize,
    graph: GraphExec,
    /// Outlives the graph, which is dropped first.
    chosen: Chosen,
}

impl PreparedProducts<'_> {
    /// The kernel that a way uses.
    pub fn kernel(&self, way: Way) -> &str {
        match way {
            Way::TimeOnly => &self.chosen.alone.name,
            Way::Streams | Way::Graph => &self.chosen.beside.name,
            Way::SuperKernel => &self.chosen.together.name,
        }
    }

    /// Runs all products once, and waits for them.
    pub fn run(&self, way: Way) -> Result<(), CudaError> {
        match way {
            Way::TimeOnly => self.seats(way).iter().try_for_each(|seat| {
                // SAFETY: memory and kernel live, and the next statement waits.
                unsafe { self.chosen.alone.launch(&seat.stream, seat.table.address(), 1) }?;
                seat.stream.synchronize()
            }),
            Way::Streams => {
                for seat in self.seats(way) {
                    // SAFETY: as above; all that was launched is waited for below, or, after an error, before memory
                    // is freed.
                    unsafe { self.chosen.beside.launch(&seat.stream, seat.table.address(), 1) }?;
                }
                self.of.gpu.context.synchronize()
            }
            Way::Graph => {
                self.graph.launch(&self.of.stream)?;
                self.of.stream.synchronize()
            }
            Way::SuperKernel => {
                self.start_super_kernel()?;
                self.of.stream.synchronize()
            }
        }
    }

    fn start_super_kernel(&self) -> Result<(), CudaError> {
        let Chosen { together, .. } = &self.chosen;
        // SAFETY: the table and what it names are of `self.of`, which outlives the launch: freeing memory waits.
        unsafe { together.launch(&self.of.stream, self.of.table.address(), self.tenants) }
    }

    /// Runs a way with outputs that hold no numbers before, and says how far the results are from sums in double
    /// precision.
    pub fn check(&self, way: Way) -> Result<Deviation, CudaError> {
        let seats = self.seats(way);
        seats.iter().try_for_each(Seat::spoil)?;
        self.run(way)?;
        self.of.deviation(seats)
    }

    /// Times of runs as the host sees them, in microseconds, after some that are not counted.
    pub fn times_us(&self, way: Way, warm_ups: usize, runs: usize) -> Result<Vec<f64>, CudaError> {
        (0..warm_ups).try_for_each(|_| self.run(way))?;
        let time = |_| {
            let start = Instant::now();
            self.run(way)?;
            Ok(start.elapsed().as_secs_f64() * 1e6)
        };
        (0..runs).map(time).collect()
    }

    /// Times of the launch for all tenants as the GPU sees them, in microseconds.
    pub fn super_kernel_gpu_times_us(&self, runs: usize) -> Result<Vec<f64>, CudaError> {
        let stream = &self.of.stream;
        let (start, end) = (Event::with_timing(stream)?, Event::with_timing(stream)?);
        let time = |_| {
            start.record(stream)?;
            self.start_super_kernel()?;
            end.record(stream)?;
            end.synchronize()?;
            end.elapsed_us_since(&start)
        };
        (0..runs).map(time).collect()
    }

    fn seats(&self, way: Way) -> &[Seat] {
        match way {
            Way::TimeOnly if !self.of.apart.is_empty() => &self.of.apart[..self.tenants],
            _ => &self.of.together[..self.tenants],
        }
    }
}
