//! Kernel launches as data: what is compiled, how it is launched, and on what. Nothing here needs a GPU.

use std::fmt;
use std::sync::Arc;

use crate::Chip;
use crate::library_call::LibraryCall;

/// One variant of device code: a template with its parameters fixed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KernelSource {
    /// The template's file name, for messages.
    pub template: &'static str,
    /// The template's text.
    pub text: &'static str,
    /// The kernel's name in the template; `extern "C"`.
    pub entry: &'static str,
    /// The parameters, defined before the template, in order.
    pub defines: Vec<(&'static str, String)>,
    /// Code that is put between the parameters and the template: what is generated for one chain of operators.
    pub generated: String,
    /// It uses instructions of one architecture alone, such as `wgmma`.
    pub is_exact: bool,
    /// Its blocks share out what there is to compute, of all requests where there are several, so that a launch has no more of them
    /// along x than SMs but in the background, where they leave after each tile. Its last parameter says how many there are where not
    /// all are launched, else 0.
    pub stays: bool,
    /// How one launch of it computes several requests, where it does.
    pub entries: Option<Entries>,
    /// The kernels that one launch of it computes problems of, where it does; it is no kernel of its own then.
    pub shared: Option<Shared>,
}

/// How one launch computes several requests: blocks follow those of the entry before along z, but for those that stay, each of which
/// goes through requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entries {
    /// Blocks of one entry along z.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
}

/// How one launch computes problems of several kernels: blocks of each problem follow those of the one before, all along x.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shared {
    /// The kernels, all different.
    pub kernels: Vec<SharedKernel>,
    /// The size of the structure that holds the parameters of all problems.
    pub parameter_bytes: usize,
}

/// A kernel whose problems are computed by a launch that it shares with others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SharedKernel {
    /// What computes them.
    pub source: KernelSource,
    /// Threads of a block of its own.
    pub threads: u32,
    /// Blocks of each problem along x, y and z.
    pub grids: Vec<[u32; 3]>,
}

/// The name of the kernel that calls others for the problem of each block, and where its text begins.
const SHARED_KERNEL: &str = "shared_launch";
const SHARED_TEMPLATE: (&str, &str) =
    ("shared_launch.cuh", include_str!("../kernels/shared_launch.cuh"));

/// The name of the kernel that calls another one for the entry of each block.
const ENTRIES_KERNEL: &str = "entries";

impl KernelSource {
    /// A template with its parameters.
    pub fn new(
        template: &'static str,
        text: &'static str,
        entry: &'static str,
        defines: Vec<(&'static str, String)>,
    ) -> Self {
        let generated = String::new();
        let (is_exact, stays) = (false, false);
        let (entries, shared) = (None, None);
        Self { template, text, entry, defines, generated, is_exact, stays, entries, shared }
    }

    /// What computes problems of several kernels in one launch.
    pub(crate) fn of_shared(shared: Shared) -> Self {
        let (template, text) = SHARED_TEMPLATE;
        let is_exact = shared.kernels.iter().any(|kernel| kernel.source.is_exact);
        let shared = Some(shared);
        Self { is_exact, shared, ..Self::new(template, text, SHARED_KERNEL, Vec::new()) }
    }

    /// What is launched.
    pub fn entry_point(&self) -> &'static str {
        if self.entries.is_some() { ENTRIES_KERNEL } else { self.entry }
    }
}

/// One launch of a kernel.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What runs.
    pub source: KernelSource,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
    /// Dynamic shared memory of a block.
    pub shared_bytes: u32,
    /// Neighbouring blocks along x, y and z that run together; `[1, 1, 1]` where they need not.
    pub cluster: [u32; 3],
    /// The kernel's parameters in order.
    pub arguments: Vec<Argument>,
}

impl Launch {
    /// Has its blocks have an SM each where it computes so many requests and there are enough SMs for all of them.
    pub(crate) fn spread(&mut self, requests: usize, chip: Chip) {
        let blocks = self.grid.iter().product::<u32>().saturating_mul(requests as u32);
        self.shared_bytes = self.shared_bytes.max(chip.spreading_bytes(blocks));
    }

    /// The same with no more blocks that stay than these SMs, as in the foreground, on whatever stream of at least as many.
    pub(crate) fn staying_on(&self, sms: u32) -> Self {
        let mut launch = self.clone();
        if launch.source.stays {
            let blocks = launch.grid[0].min(sms);
            launch.grid[0] = blocks;
            if let Some(all_blocks) = launch.arguments.last_mut() {
                *all_blocks = Argument::u32(blocks as usize);
            }
        }
        launch
    }

    /// The same for up to so many requests, each of which has the grid of one; blocks that stay are there for all of them already.
    pub(crate) fn for_entries(&self, count: u32) -> Self {
        let [x, y, z] = self.grid;
        let entries = Some(Entries { blocks: z, threads: self.threads });
        let source = KernelSource { entries, ..self.source.clone() };
        let grid = if source.stays { self.grid } else { [x, y, z * count] };
        Self { source, grid, ..self.clone() }
    }
}

/// One parameter of a kernel.
#[derive(Clone, Debug)]
pub enum Argument {
    /// The address of one of the node's inputs, as the node lists them.
    Input(usize),
    /// The address of one of the node's inputs as the caller gives it, in its own type: for inputs of the graph, and
    /// instead of [`Argument::Input`].
    Given(usize),
    /// The address of one of the node's outputs.
    Output(usize),
    /// The address of weights that were brought into the kernel's own form.
    Weights(Arc<DeviceWeights>),
    /// An address in the step's scratch memory, which holds whatever was left there.
    Workspace {
        /// From its start.
        offset_bytes: usize,
    },
    /// An address in memory that is zero before the first run, and that kernels must leave zero: counters of
    /// blocks that have arrived.
    Counters {
        /// How many 32-bit counters the launch uses, from the address on.
        count: usize,
    },
    /// Where the kernel reports input that it cannot compute with, such as an index out of range: the prelude's
    /// structure `Fault`, 16 bytes of an address (64 bits), a number (32 bits) and padding. The address is that of
    /// one word per executable, which is zero before a run; the number is that of the step in the plan, plus one.
    Fault,
    /// A null pointer, for an operand that is absent.
    Null,
    /// Several addresses, one after the other: a structure of pointers.
    Addresses(Vec<Argument>),
    /// A value, as its bytes lie in memory.
    Bytes(Vec<u8>),
    /// A description of a tensor for the bulk copy engine, made when the plan is bound to memory.
    TensorMap(TensorMap),
}

impl Argument {
    /// A 32-bit integer.
    pub fn i32(value: usize) -> Self {
        let value = i32::try_from(value)
            .expect("kernels count in 32 bits; `supports` has checked the sizes");
        Self::Bytes(value.to_ne_bytes().to_vec())
    }

    /// A 32-bit count, which may be that of the elements of any tensor.
    pub fn u32(value: usize) -> Self {
        let value = u32::try_from(value).expect("a tensor has at most 2^31 elements");
        Self::Bytes(value.to_ne_bytes().to_vec())
    }

    /// A float.
    pub fn f32(value: f32) -> Self {
        Self::Bytes(value.to_ne_bytes().to_vec())
    }

    /// A structure of plain numbers, laid out as the kernel declares it.
    pub fn structure<T: bytemuck::NoUninit>(value: &T) -> Self {
        Self::Bytes(bytemuck::bytes_of(value).to_vec())
    }
}

/// A tensor as the bulk copy engine sees it, innermost axis first.
#[derive(Clone, Debug)]
pub struct TensorMap {
    /// Where it starts.
    pub base: Box<Argument>,
    /// How its elements are stored.
    pub storage: crate::Storage,
    /// Sizes of the axes, in elements.
    pub sizes: Vec<u64>,
    /// Distances between neighbours along every axis but the innermost, in bytes.
    pub strides_bytes: Vec<u64>,
    /// What one copy moves.
    pub copied: Copied,
    /// Bytes after which the pattern of the shared memory layout repeats: 0, 32, 64 or 128.
    pub swizzle_bytes: u32,
}

/// What the bulk copy engine moves at once.
#[derive(Clone, Debug)]
pub enum Copied {
    /// A box of so many elements along every axis.
    Box(Vec<u32>),
    /// Neighbouring channels at one tap of neighbouring windows, of images with the axes channels, columns, rows, images.
    Windows(CopiedWindows),
}

/// Windows of channels-last images, along columns and rows.
#[derive(Clone, Copy, Debug)]
pub struct CopiedWindows {
    /// Channels that one copy moves.
    pub channels: u32,
    /// Windows that one copy moves.
    pub count: u32,
    /// Where the first window begins: negative where it begins in the padding.
    pub first: [i32; 2],
    /// Where the last window begins, from the last element of the image on.
    pub last: [i32; 2],
    /// From one window to the next.
    pub strides: [u32; 2],
}

/// One way to compute a node.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The kernel and its configuration, for reports and for the tuning database.
    pub name: String,
    /// The launches in order.
    pub launches: Vec<Launch>,
    /// What one of NVIDIA's libraries computes after the launches.
    pub(crate) library_call: Option<Box<LibraryCall>>,
    /// Scratch memory that all of them share.
    pub workspace_bytes: usize,
    /// What a search is told of it, where one asked.
    pub(crate) traits: Option<Traits>,
}

/// Where a candidate lies in the space of its kernel family, and what its time depends on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Traits {
    /// The family, and one number per parameter.
    pub(crate) parameters: Vec<i32>,
    /// What a model can learn its time from.
    pub(crate) features: Vec<f32>,
}

impl Traits {
    /// The family of products by the template `gemm.cu`.
    pub(crate) const TEMPLATE: i32 = 0;
    /// The family of calls of libraries.
    pub(crate) const LIBRARY: i32 = 1;
    /// All other kernels.
    pub(crate) const OTHER: i32 = 2;
    /// How many features every candidate has.
    pub(crate) const FEATURES: usize = 24;
    /// How many parameters every candidate has.
    pub(crate) const PARAMETERS: usize = 10;
}

impl Candidate {
    /// Launches alone.
    pub fn new(name: impl Into<String>, launches: Vec<Launch>, workspace_bytes: usize) -> Self {
        Self { name: name.into(), launches, library_call: None, workspace_bytes, traits: None }
    }

    /// What all its parts are given.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &Argument> {
        let of_call = self.library_call.iter().flat_map(|call| call.operands.all());
        self.launches.iter().flat_map(|launch| &launch.arguments).chain(of_call)
    }
}

/// Weights in a kernel's own form, resident on the device as long as anything holds them.
pub struct DeviceWeights {
    /// Where they lie.
    pub address: u64,
    /// Their size.
    pub size_bytes: usize,
    /// What keeps the memory allocated.
    pub memory: Box<dyn std::any::Any + Send + Sync>,
}

impl fmt::Debug for DeviceWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceWeights({} bytes)", self.size_bytes)
    }
}

/// Where weights are put: device memory, or nowhere when a plan is made without a GPU.
pub trait WeightMemory: Send + Sync {
    /// Copies bytes to the device.
    fn store(&self, bytes: &[u8]) -> Result<DeviceWeights, weft_device::DeviceError>;
}
