//! Graphs: recorded in a partition, launched anywhere, and no trace of what failed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use weft_cuda::driver::{
    CudaError, DeviceBuffer, GraphExec, Kernel, LaunchShape, PartitionContext, PartitionPool,
    Stream, UnitTable, capture,
};
use weft_device::UnitSet;

use crate::gpu::{Gpu, gpu, start, words};

const COUNT: u32 = 1000;

fn partition(gpu: &Gpu, unit: usize) -> Arc<PartitionContext> {
    let table = UnitTable::split(&gpu.context, 8).unwrap();
    table.partition(&[unit].into_iter().collect()).unwrap()
}

/// Records `launches` times "three times itself plus one".
fn record(
    partition: &PartitionContext,
    kernel: &Kernel,
    address: u64,
    launches: usize,
) -> Result<GraphExec, CudaError> {
    partition.load([kernel])?;
    let is_dependent = partition.context().chip().is_hopper_or_later();
    let shape = LaunchShape { is_dependent, ..LaunchShape::linear(4, 256) };
    capture(partition.stream(), |stream| {
        (0..launches).try_for_each(|_| start(stream, kernel, &shape, address, &[COUNT, 1]))
    })
}

fn expected(steps: usize) -> u32 {
    (0..steps).fold(0u32, |x, _| x.wrapping_mul(3).wrapping_add(1))
}

fn check(buffer: &DeviceBuffer, steps: usize) {
    let mut bytes = vec![0; buffer.size_bytes()];
    buffer.read(0, &mut bytes).unwrap();
    assert_eq!(words(&bytes), vec![expected(steps); COUNT as usize]);
}

fn zeros(gpu: &Gpu) -> DeviceBuffer {
    DeviceBuffer::zeroed(&gpu.context, 4 * COUNT as usize).unwrap()
}

#[test]
fn a_recorded_graph_runs_as_often_as_it_is_launched() {
    let Some(gpu) = gpu() else { return };
    let (partition, kernel, buffer) = (partition(&gpu, 1), gpu.kernel("advance"), zeros(&gpu));
    let graph = record(&partition, &kernel, buffer.address(), 7).unwrap();
    assert_eq!(graph.node_count(), 7);
    check(&buffer, 0);
    for _ in 0..3 {
        graph.launch(partition.stream()).unwrap();
    }
    partition.stream().synchronize().unwrap();
    check(&buffer, 21);
    let elsewhere = Stream::new(&gpu.context).unwrap();
    graph.launch(&elsewhere).unwrap();
    elsewhere.synchronize().unwrap();
    check(&buffer, 28);
}

#[test]
fn work_beside_a_recording_runs_and_is_not_recorded() {
    let Some(gpu) = gpu() else { return };
    for units in [1, UnitTable::split(&gpu.context, 8).unwrap().layout().len()] {
        let table = UnitTable::split(&gpu.context, 8).unwrap();
        let partition = table.partition(&UnitSet::first(units)).unwrap();
        let (kernel, buffer) = (gpu.kernel("advance"), zeros(&gpu));
        partition.load([&*kernel]).unwrap();
        let shape = LaunchShape::linear(4, 256);
        let launch =
            |stream: &Stream| start(stream, &kernel, &shape, buffer.address(), &[COUNT, 1]);
        let graph = capture(partition.stream(), |stream| {
            launch(stream)?;
            thread::scope(|scope| {
                let beside = scope.spawn(|| {
                    launch(partition.stream())?;
                    partition.stream().synchronize()
                });
                beside.join().unwrap()
            })
        });
        check(&buffer, 1);
        graph.unwrap().launch(partition.stream()).unwrap();
        partition.stream().synchronize().unwrap();
        check(&buffer, 2);
    }
}

#[test]
fn recording_that_fails_leaves_the_stream_usable() {
    let Some(gpu) = gpu() else { return };
    let (partition, kernel, buffer) = (partition(&gpu, 0), gpu.kernel("advance"), zeros(&gpu));
    let shape = LaunchShape::linear(4, 256);
    let launch = |stream: &Stream| start(stream, &kernel, &shape, buffer.address(), &[COUNT, 1]);

    let refused = capture(partition.stream(), |stream| {
        launch(stream)?;
        Err(CudaError::Refused("enough".to_string()))
    });
    assert!(matches!(refused, Err(CudaError::Refused(why)) if why == "enough"));

    let panicked = catch_unwind(AssertUnwindSafe(|| {
        capture(partition.stream(), |stream| -> Result<(), CudaError> {
            launch(stream)?;
            panic!("in the middle of recording")
        })
    }));
    assert!(panicked.is_err());

    let waited = capture(partition.stream(), |stream| {
        launch(stream)?;
        stream.synchronize()
    });
    assert!(waited.is_err(), "nothing can be waited for while recording");

    launch(partition.stream()).unwrap();
    partition.stream().synchronize().unwrap();
    check(&buffer, 1);
    let graph = record(&partition, &kernel, buffer.address(), 1).unwrap();
    graph.launch(partition.stream()).unwrap();
    partition.stream().synchronize().unwrap();
    check(&buffer, 2);
}

#[test]
fn threads_record_and_launch_side_by_side() {
    let Some(gpu) = gpu() else { return };
    let pool = PartitionPool::new(UnitTable::split(&gpu.context, 8).unwrap());
    let units = pool.table().layout().len();
    let kernel = gpu.kernel("advance");
    let buffers: Vec<DeviceBuffer> = (0..8).map(|_| zeros(&gpu)).collect();
    thread::scope(|scope| {
        for (index, buffer) in buffers.iter().enumerate() {
            let (pool, kernel) = (&pool, &kernel);
            scope.spawn(move || {
                for round in 0..10 {
                    // Some threads share a partition, and then its stream.
                    let unit = (index / 2 + round) % units;
                    let partition = pool.get(&[unit].into_iter().collect()).unwrap();
                    let graph = record(&partition, kernel, buffer.address(), 2).unwrap();
                    let own = Stream::new(partition.context()).unwrap();
                    graph.launch(&own).unwrap();
                    own.synchronize().unwrap();
                }
            });
        }
    });
    buffers.iter().for_each(|buffer| check(buffer, 20));
}

#[test]
fn partitions_are_made_once_and_many_coexist() {
    let Some(gpu) = gpu() else { return };
    let pool = PartitionPool::new(UnitTable::split(&gpu.context, 2).unwrap());
    let units = pool.table().layout().len();
    let sets: Vec<UnitSet> = (0..units.min(64)).map(|unit| [unit].into_iter().collect()).collect();
    pool.prepare(&sets).unwrap();
    let first = pool.get(&sets[0]).unwrap();
    assert!(Arc::ptr_eq(&first, &pool.get(&sets[0]).unwrap()));
    for units in &sets {
        let partition = pool.get(units).unwrap();
        assert_eq!(partition.sm_count(), pool.table().layout().sm_count_of(units));
    }
}
