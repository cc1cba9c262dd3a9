//! A partition confines: what runs in it runs on its SMs, on all of them, and on no others.

use std::collections::BTreeSet;

use weft_cuda::Reach;
use weft_cuda::driver::{DeviceBuffer, LaunchShape, PartitionContext, UnitTable, capture};
use weft_device::UnitSet;

use crate::gpu::{Gpu, gpu, start, words};

/// How long a block keeps its SM, so that no SM takes the work of another.
const SPIN_US: u32 = 300;
/// Blocks for each SM, of which one fits at a time.
const BLOCKS_PER_SM: u32 = 3;

/// A generator of numbers that is the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// Gives each unit to one of at most `parts` partitions at random.
fn random_layout(unit_count: usize, parts: usize, seed: u64) -> Vec<UnitSet> {
    let mut numbers = Numbers(seed);
    let owners: Vec<usize> = (0..unit_count).map(|_| numbers.below(parts)).collect();
    (0..parts)
        .map(|part| (0..unit_count).filter(|&unit| owners[unit] == part).collect::<UnitSet>())
        .filter(|units| !units.is_empty())
        .collect()
}

/// Runs on all partitions at once, through a graph where `is_captured`; the SMs that each used.
fn used_sms(gpu: &Gpu, partitions: &[&PartitionContext], is_captured: bool) -> Vec<BTreeSet<u32>> {
    let kernel = gpu.kernel("note_sm");
    let chip = gpu.context.chip();
    let shape_of = |partition: &PartitionContext| LaunchShape {
        shared_bytes: chip.shared_bytes_per_block,
        ..LaunchShape::linear(BLOCKS_PER_SM * partition.sm_count(), 32)
    };
    let buffers: Vec<DeviceBuffer> = partitions
        .iter()
        .map(|partition| 4 * shape_of(partition).grid[0] as usize)
        .map(|size_bytes| DeviceBuffer::zeroed(&gpu.context, size_bytes).unwrap())
        .collect();
    let mut graphs = Vec::new();
    for (partition, buffer) in partitions.iter().zip(&buffers) {
        partition.load([&*kernel]).unwrap();
        let launch =
            |stream: &_| start(stream, &kernel, &shape_of(partition), buffer.address(), &[SPIN_US]);
        if is_captured {
            graphs.push(capture(partition.stream(), launch).unwrap());
        } else {
            launch(partition.stream()).unwrap();
        }
    }
    for (graph, partition) in graphs.iter().zip(partitions) {
        graph.launch(partition.stream()).unwrap();
    }
    for partition in partitions {
        partition.stream().synchronize().unwrap();
    }
    buffers
        .iter()
        .map(|buffer| {
            let mut bytes = vec![0; buffer.size_bytes()];
            buffer.read(0, &mut bytes).unwrap();
            words(&bytes).into_iter().collect()
        })
        .collect()
}

fn check_layout(gpu: &Gpu, table: &UnitTable, sets: &[UnitSet], is_captured: bool) {
    let partitions: Vec<_> = sets.iter().map(|units| table.partition(units).unwrap()).collect();
    let partitions: Vec<&PartitionContext> =
        partitions.iter().map(|partition| &**partition).collect();
    let used = used_sms(gpu, &partitions, is_captured);
    let mut all = BTreeSet::new();
    for (partition, used) in partitions.iter().zip(used) {
        let units = partition.units();
        assert_eq!(partition.sm_count(), table.layout().sm_count_of(units), "units {units}");
        assert_eq!(used.len(), partition.sm_count() as usize, "units {units} used SMs {used:?}");
        let shared: Vec<_> = all.intersection(&used).collect();
        assert!(shared.is_empty(), "units {units} share SMs {shared:?} with other units");
        all.extend(used);
    }
}

#[test]
fn disjoint_partitions_never_share_an_sm() {
    let Some(gpu) = gpu() else { return };
    for (sms_per_unit, parts, seed) in
        [(8, 2, 1), (8, 4, 2), (8, 5, 3), (8, 16, 4), (2, 3, 5), (2, 12, 6)]
    {
        let table = UnitTable::split(&gpu.context, sms_per_unit).unwrap();
        assert_eq!(table.layout().total_sms(), gpu.context.chip().sm_count);
        let sets = random_layout(table.layout().len(), parts, seed);
        for is_captured in [false, true] {
            check_layout(&gpu, &table, &sets, is_captured);
        }
    }
}

#[test]
fn every_unit_is_a_partition_of_its_own() {
    let Some(gpu) = gpu() else { return };
    let table = UnitTable::split(&gpu.context, 8).unwrap();
    let sets: Vec<UnitSet> =
        (0..table.layout().len()).map(|unit| [unit].into_iter().collect()).collect();
    check_layout(&gpu, &table, &sets, true);
}

#[test]
fn the_partition_of_all_units_has_every_sm() {
    let Some(gpu) = gpu() else { return };
    let table = UnitTable::split(&gpu.context, 8).unwrap();
    check_layout(&gpu, &table, &[table.layout().all()], false);
}

#[test]
fn a_process_that_nobody_bounds_reaches_every_sm() {
    let Some(gpu) = gpu() else { return };
    let all = gpu.context.chip().sm_count as usize;
    assert_eq!(Reach::of_process(0).unwrap(), Reach { sms: all, reported_sms: all });
}
