//! Products of many tenants in one launch, in f32 without tensor cores: `sgemm.cu`, `sgemm_panels.cu` where tiles divide
//! them, and `sgemv.cu` for one column.

mod panels;

use super::sgemv;
use crate::Chip;
use crate::launch::{Argument, KernelSource, Launch};

pub(crate) use panels::packed;

const TEXT: &str = include_str!("../../kernels/sgemm.cu");

/// Bytes of one entry of the table: addresses of weights, input and output, and of the weights as panels or zero.
pub(crate) const ENTRY_BYTES: usize = 32;

/// How many blocks may share a tile.
const CLUSTERS: [u32; 4] = [1, 2, 4, 8];

/// Clusters are of use until so many blocks per SM are there without them.
const BLOCKS_PER_SM: usize = 4;

/// The most tenants of one launch: blocks along y.
pub(crate) const MAX_TENANTS: usize = 65_535;

/// The longest side of a product, so that all that kernels count fits 32 bits.
const MAX_SIDE: usize = 1 << 16;

/// The largest operand of one product, in elements.
const MAX_ELEMENTS: usize = 1 << 26;

/// The sizes of a tenant's product: weights of `m` rows with `k` terms, times an input of `k` rows and `n` columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProductShape {
    /// Rows of weights and output.
    pub m: usize,
    /// Columns of input and output.
    pub n: usize,
    /// Terms of every sum.
    pub k: usize,
}

impl ProductShape {
    /// Floating-point operations of one product.
    pub fn flops(&self) -> f64 {
        2.0 * self.m as f64 * self.n as f64 * self.k as f64
    }

    /// Bytes of one product's operands.
    pub fn bytes(&self) -> f64 {
        4.0 * (self.m * self.k + self.k * self.n + self.m * self.n) as f64
    }

    /// True where the kernels can count what it has.
    pub(crate) fn is_supported(&self) -> bool {
        let Self { m, n, k } = *self;
        [m, n, k].iter().all(|side| (1..=MAX_SIDE).contains(side))
            && [m * k, k * n, m * n].iter().all(|&elements| elements <= MAX_ELEMENTS)
    }
}

/// One way to compute the products of a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProductKernel {
    /// For reports.
    pub(crate) name: String,
    pub(crate) source: KernelSource,
    /// Blocks of one product.
    blocks: u32,
    cluster: u32,
    threads: u32,
    shared_bytes: u32,
    shape: ProductShape,
}

impl ProductKernel {
    /// The launch for the first `tenants` entries of a table, which is its input.
    pub(crate) fn launch(&self, tenants: usize) -> Launch {
        let ProductShape { m, n, k } = self.shape;
        let sizes: &[usize] = if n == 1 { &[m, k] } else { &[m, n, k] };
        let arguments = sizes.iter().map(|&size| Argument::i32(size));
        Launch {
            source: self.source.clone(),
            grid: [self.blocks, tenants as u32, 1],
            threads: self.threads,
            shared_bytes: self.shared_bytes,
            cluster: [self.cluster, 1, 1],
            arguments: [Argument::Input(0)].into_iter().chain(arguments).collect(),
        }
    }
}

/// All kernels that may be fastest for so many products at once.
pub(crate) fn candidates(shape: &ProductShape, tenants: usize, chip: &Chip) -> Vec<ProductKernel> {
    if shape.n == 1 {
        return sgemv::VARIANTS.iter().map(|variant| of_rows(variant, shape)).collect();
    }
    let mut found = Vec::new();
    if chip.is_hopper_or_later() {
        let legal = panels::VARIANTS.iter().filter(|variant| variant.is_legal(shape));
        found.extend(legal.map(|variant| variant.kernel(shape)));
    }
    for variant in VARIANTS.iter().filter(|variant| variant.is_legal(shape)) {
        for cluster in CLUSTERS {
            let blocks = variant.tiles(shape) * tenants * cluster as usize;
            let is_of_use = cluster == 1
                || (chip.is_hopper_or_later()
                    && blocks <= BLOCKS_PER_SM * chip.sm_count as usize
                    && cluster as usize <= shape.k.div_ceil(variant.tile_k()));
            if is_of_use && variant.shared_bytes(cluster) <= chip.shared_bytes_per_block {
                found.push(variant.kernel(shape, cluster));
            }
        }
    }
    // One product may have to run beside others, whose blocks then share SMs.
    if tenants > 1 {
        for kernel in &mut found {
            let blocks = kernel.blocks.saturating_mul(tenants as u32);
            kernel.shared_bytes = kernel.shared_bytes.max(chip.spreading_bytes(blocks));
        }
    }
    found
}

fn of_rows(variant: &sgemv::Variant, shape: &ProductShape) -> ProductKernel {
    ProductKernel {
        name: variant.name(),
        source: variant.source(shape.k),
        blocks: variant.blocks(shape.m) as u32,
        cluster: 1,
        threads: variant.threads() as u32,
        shared_bytes: 0,
        shape: *shape,
    }
}

/// Parameters of `sgemm.cu`, where they are described.
#[derive(Clone, Copy, Debug)]
struct Variant {
    tile: [usize; 2],
    thread: [usize; 2],
    lanes_m: usize,
    slices: usize,
    step_k: usize,
    stages: usize,
    is_turned: bool,
    is_by_columns: bool,
    has_copies_first: bool,
    blocks: usize,
}

impl Variant {
    const fn new(tile: [usize; 2], thread: [usize; 2], slices: usize, step_k: usize) -> Self {
        Self {
            tile,
            thread,
            lanes_m: 8,
            slices,
            step_k,
            stages: 4,
            is_turned: true,
            is_by_columns: false,
            has_copies_first: false,
            blocks: 1,
        }
    }

    const fn as_stored(self) -> Self {
        Self { is_turned: false, ..self }
    }

    const fn by_columns(self) -> Self {
        Self { is_by_columns: true, ..self }
    }

    const fn copies_first(self) -> Self {
        Self { has_copies_first: true, ..self }
    }

    const fn stages(self, stages: usize) -> Self {
        Self { stages, ..self }
    }

    const fn blocks(self, blocks: usize) -> Self {
        Self { blocks, ..self }
    }

    const fn wide(self) -> Self {
        Self { lanes_m: 4, ..self }
    }

    fn warps(&self) -> [usize; 2] {
        let warp = [self.lanes_m * self.thread[0], 32 / self.lanes_m * self.thread[1]];
        [self.tile[0] / warp[0], self.tile[1] / warp[1]]
    }

    fn threads(&self) -> usize {
        32 * self.slices * self.warps()[0] * self.warps()[1]
    }

    fn tile_k(&self) -> usize {
        self.slices * self.step_k
    }

    fn tiles(&self, shape: &ProductShape) -> usize {
        shape.m.div_ceil(self.tile[0]) * shape.n.div_ceil(self.tile[1])
    }

    /// What a block of a cluster of this size asks for: stages, and after them the sums in the same place.
    fn shared_bytes(&self, cluster: u32) -> u32 {
        let [tile_m, tile_n] = self.tile;
        let left = match self.is_turned {
            true => self.tile_k() * (tile_m + 4),
            false => tile_m * (self.tile_k() + 4),
        };
        let stages = self.stages * (left + self.tile_k() * tile_n);
        let is_shared = self.slices > 1 || cluster > 1;
        let sums = if is_shared { self.slices * tile_m * tile_n } else { 0 };
        (size_of::<f32>() * stages.max(sums)) as u32
    }

    /// True where threads share the copies of a stage evenly, as the kernel asserts.
    fn is_legal(&self, shape: &ProductShape) -> bool {
        let (threads, tile_k) = (self.threads(), self.tile_k());
        let left_width = if !self.is_turned && shape.k.is_multiple_of(4) { 4 } else { 1 };
        let right_width = if shape.n.is_multiple_of(4) { 4 } else { 1 };
        let shares = |elements: usize, row: usize, rows: usize| {
            elements.is_multiple_of(row) && rows.is_multiple_of(elements / row)
        };
        shares(threads * left_width, tile_k, self.tile[0])
            && shares(threads * right_width, self.tile[1], tile_k)
            && (!self.is_turned
                || (tile_k.is_multiple_of(8) && (threads / 32).is_multiple_of(tile_k / 8)))
    }

    fn name(&self, cluster: u32) -> String {
        let [[tile_m, tile_n], [thread_m, thread_n]] = [self.tile, self.thread];
        let mut name = format!(
            "{tile_m}x{tile_n} by {thread_m}x{thread_n}, k {}x{}, {} stages",
            self.slices, self.step_k, self.stages
        );
        if !self.is_turned {
            name.push_str(", as stored");
        }
        if self.lanes_m == 4 {
            name.push_str(", wide warps");
        }
        if self.blocks > 1 {
            name.push_str(&format!(", {} per SM", self.blocks));
        }
        if cluster > 1 {
            name.push_str(&format!(", cluster of {cluster}"));
        }
        name
    }

    fn kernel(&self, shape: &ProductShape, cluster: u32) -> ProductKernel {
        ProductKernel {
            name: self.name(cluster),
            source: self.source(shape),
            blocks: self.tiles(shape) as u32 * cluster,
            cluster,
            threads: self.threads() as u32,
            shared_bytes: self.shared_bytes(cluster),
            shape: *shape,
        }
    }

    fn source(&self, shape: &ProductShape) -> KernelSource {
        let flag = |is_set: bool| u8::from(is_set).to_string();
        let is_exact = shape.m.is_multiple_of(self.tile[0])
            && shape.n.is_multiple_of(self.tile[1])
            && shape.k.is_multiple_of(self.tile_k());
        let defines = vec![
            ("TILE_M", self.tile[0].to_string()),
            ("TILE_N", self.tile[1].to_string()),
            ("THREAD_M", self.thread[0].to_string()),
            ("THREAD_N", self.thread[1].to_string()),
            ("LANES_M", self.lanes_m.to_string()),
            ("SLICES", self.slices.to_string()),
            ("STEP_K", self.step_k.to_string()),
            ("STAGES", self.stages.to_string()),
            ("TURNED", flag(self.is_turned)),
            ("BY_COLUMNS", flag(self.is_by_columns)),
            ("COPIES_FIRST", flag(self.has_copies_first)),
            ("BLOCKS", self.blocks.to_string()),
            ("EXACT", flag(is_exact)),
            ("WIDE_K", flag(shape.k.is_multiple_of(4))),
            ("WIDE_N", flag(shape.n.is_multiple_of(4))),
        ];
        KernelSource::new("sgemm.cu", TEXT, "sgemm", defines)
    }
}

/// Large tiles use shared memory least; small ones, slices and clusters fill the GPU with few products. The order of
/// outputs and of copies is the one for which the compiler finds registers whose banks collide least.
const VARIANTS: &[Variant] = &[
    Variant::new([128, 128], [8, 8], 1, 16).by_columns(),
    Variant::new([128, 128], [8, 8], 1, 8).stages(6),
    Variant::new([128, 128], [8, 8], 1, 32).stages(3),
    Variant::new([128, 128], [8, 8], 1, 16).as_stored(),
    Variant::new([128, 128], [8, 8], 1, 32).stages(3).as_stored(),
    Variant::new([128, 128], [8, 8], 2, 16).copies_first(),
    Variant::new([128, 128], [8, 8], 2, 16).copies_first().wide(),
    Variant::new([128, 128], [8, 8], 2, 32).stages(3).by_columns(),
    Variant::new([128, 128], [16, 8], 1, 16).by_columns(),
    Variant::new([128, 128], [16, 8], 2, 8),
    Variant::new([128, 128], [16, 8], 2, 16).by_columns(),
    Variant::new([128, 128], [8, 16], 2, 16),
    Variant::new([128, 64], [8, 8], 1, 16).blocks(2),
    Variant::new([128, 64], [8, 8], 1, 16).blocks(2).as_stored(),
    Variant::new([128, 64], [8, 8], 2, 16).blocks(2).copies_first(),
    Variant::new([128, 64], [8, 8], 4, 16).copies_first(),
    Variant::new([64, 128], [8, 8], 1, 16).blocks(2).by_columns(),
    Variant::new([64, 128], [8, 8], 1, 16).blocks(2).as_stored(),
    Variant::new([64, 128], [8, 8], 2, 16).blocks(2).copies_first(),
    Variant::new([64, 64], [8, 8], 1, 16).blocks(4),
    Variant::new([64, 64], [8, 8], 2, 16).blocks(3),
    Variant::new([64, 64], [8, 8], 4, 8).blocks(2),
    Variant::new([64, 64], [8, 8], 4, 16),
    Variant::new([64, 64], [8, 4], 1, 16).blocks(4).by_columns().copies_first(),
    Variant::new([64, 64], [8, 4], 2, 16).blocks(2).by_columns().copies_first(),
    Variant::new([64, 64], [4, 8], 2, 16).blocks(2),
    Variant::new([64, 32], [8, 8], 4, 8).blocks(4),
    Variant::new([64, 32], [8, 4], 4, 8).blocks(2).by_columns().copies_first(),
    Variant::new([32, 64], [4, 8], 4, 8).blocks(2),
    Variant::new([32, 32], [4, 4], 4, 8).blocks(3).by_columns(),
    Variant::new([32, 32], [4, 8], 8, 8).blocks(2),
];

/// Typical variants, for checking that they compile: all of them for a product that they divide, and some for products
/// that vectors divide, and that nothing divides.
pub(crate) fn samples() -> Vec<KernelSource> {
    let sources = |[m, n, k]: [usize; 3], step: usize| {
        let shape = ProductShape { m, n, k };
        let legal = VARIANTS.iter().filter(move |variant| variant.is_legal(&shape));
        legal.step_by(step).map(move |variant| variant.source(&shape))
    };
    let exact = sources([256, 256, 256], 1);
    let others = sources([77, 36, 44], 8).chain(sources([77, 35, 45], 8));
    exact.chain(others).chain(panels::samples()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONVOLUTION: ProductShape = ProductShape { m: 256, n: 128, k: 1152 };
    const ODD: ProductShape = ProductShape { m: 77, n: 35, k: 45 };
    const COLUMN: ProductShape = ProductShape { m: 510, n: 1, k: 514 };

    #[test]
    fn variants_are_what_an_sm_can_run() {
        for variant in VARIANTS {
            let [rows, columns] = variant.warps();
            let warp = [variant.tile[0] / rows, variant.tile[1] / columns];
            assert_eq!(warp[0], variant.lanes_m * variant.thread[0], "{variant:?}");
            assert_eq!(warp[1], 32 / variant.lanes_m * variant.thread[1], "{variant:?}");
            let threads = variant.threads();
            assert!(threads <= 1024 && variant.stages >= 3, "{variant:?}");
            let ahead = if variant.is_turned { 1 } else { 4 };
            assert!(variant.step_k.is_multiple_of(2 * ahead), "{variant:?}");
            // Sums and two terms of both operands, at the least, fit the registers of so many blocks.
            let operands = 2 * (variant.thread[0] + variant.thread[1]);
            let least = variant.thread[0] * variant.thread[1] + operands;
            let registers = (65_536 / (threads * variant.blocks)).min(255);
            assert!(least < registers, "{variant:?}: {least} of {registers}");
            let chip = Chip::H200;
            assert!(variant.shared_bytes(8) <= chip.shared_bytes_per_block, "{variant:?}");
            // One KiB of every block's is the driver's.
            let of_sm = (variant.shared_bytes(1) + 1024) * variant.blocks as u32;
            assert!(of_sm <= chip.shared_bytes_per_sm, "{variant:?}: {of_sm}");
            assert!(variant.is_legal(&CONVOLUTION), "{variant:?}");
        }
        let names: std::collections::HashSet<String> =
            VARIANTS.iter().map(|variant| variant.name(1)).collect();
        assert_eq!(names.len(), VARIANTS.len());
    }

    #[test]
    fn every_output_is_in_one_tile_of_one_launch() {
        for shape in [CONVOLUTION, ODD, ProductShape { m: 1, n: 2, k: 3 }] {
            for variant in VARIANTS.iter().filter(|variant| variant.is_legal(&shape)) {
                for cluster in CLUSTERS {
                    let launch = variant.kernel(&shape, cluster).launch(3);
                    let columns = shape.n.div_ceil(variant.tile[1]);
                    let mut times = vec![0; shape.m * shape.n];
                    for block in 0..launch.grid[0] / cluster {
                        // As the kernel numbers them.
                        let (row, column) = (block as usize / columns, block as usize % columns);
                        for m in (row * variant.tile[0]..shape.m).take(variant.tile[0]) {
                            for n in (column * variant.tile[1]..shape.n).take(variant.tile[1]) {
                                times[m * shape.n + n] += 1;
                            }
                        }
                    }
                    assert!(times.iter().all(|&times| times == 1), "{variant:?} of {shape:?}");
                    assert_eq!(launch.grid[1..], [3, 1]);
                    assert_eq!(launch.grid[0] % launch.cluster[0], 0);
                }
            }
        }
    }

    #[test]
    fn there_are_kernels_for_every_shape_and_number_of_tenants() {
        for shape in [CONVOLUTION, ODD, COLUMN] {
            for tenants in [1, 2, 64, 120, MAX_TENANTS] {
                let found = candidates(&shape, tenants, &Chip::H200);
                assert!(!found.is_empty(), "{shape:?}, {tenants} tenants");
                let launch = found[0].launch(tenants);
                assert_eq!(launch.grid[1] as usize, tenants);
            }
        }
        let clusters = |tenants| {
            let found = candidates(&CONVOLUTION, tenants, &Chip::H200);
            found.iter().filter(|kernel| kernel.cluster > 1).count()
        };
        assert!(clusters(2) > clusters(32) && clusters(1000) == 0);
        let reads_panels = |shape: &ProductShape, chip: &Chip| {
            let found = candidates(shape, 64, chip);
            found.iter().any(|kernel| kernel.source.entry == "sgemm_panels")
        };
        let older = Chip { capability: 80, ..Chip::H200 };
        assert!(reads_panels(&CONVOLUTION, &Chip::H200) && !reads_panels(&CONVOLUTION, &older));
        assert!(!reads_panels(&ODD, &Chip::H200));
        // Blocks share an SM where there are more of them than SMs, or may be of other products.
        let may_share = |tenants: usize, blocks: std::ops::RangeInclusive<u32>| {
            let found = candidates(&CONVOLUTION, tenants, &Chip::H200);
            let launches = found.iter().map(|kernel| kernel.launch(tenants));
            let mut of_size =
                launches.filter(|launch| blocks.contains(&(launch.grid[0] * launch.grid[1])));
            of_size.any(|launch| 2 * launch.shared_bytes < Chip::H200.shared_bytes_per_sm)
        };
        assert!(may_share(1, 1..=132) && !may_share(3, 1..=132) && !may_share(64, 1..=132));
        assert!(may_share(3, 133..=1000) && may_share(64, 133..=1000));
        let is_supported = |m, n, k| ProductShape { m, n, k }.is_supported();
        assert!(is_supported(1, 1, 1) && is_supported(65_536, 1, 1024));
        assert!(!is_supported(0, 1, 1) && !is_supported(65_537, 1, 1));
        assert!(!is_supported(65_536, 1, 65_536));
    }

    #[test]
    fn launches_give_kernels_what_they_take() {
        use crate::compiler::Compiler;
        use crate::plan::tests::parameters::parameter_sizes;
        let Ok(compiler) = Compiler::of_process() else { return };
        for shape in [CONVOLUTION, ODD, COLUMN] {
            let launch = candidates(&shape, 1, &Chip::H200)[0].launch(1);
            let given: Vec<usize> = launch
                .arguments
                .iter()
                .map(|argument| match argument {
                    Argument::Bytes(bytes) => bytes.len(),
                    _ => size_of::<u64>(),
                })
                .collect();
            let code = compiler.compile(&launch.source, "sm_90").unwrap();
            assert_eq!(given, parameter_sizes(&code, launch.source.entry));
        }
    }
}
