//! Models that interrupt one another on one partition: all compute what they compute alone, and who comes last is done first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use weft_cpu::CpuDevice;
use weft_device::{Device, Executable, Partition, UnitSet};
use weft_ir::{Attributes, DataType, Graph, GraphBuilder, Tensor, Value};
use weft_zoo::{ZooOptions, build, entry, sample_inputs};

/// An executable, inputs for it, and what it makes of them when nothing interrupts it.
struct Prepared {
    executable: Box<dyn Executable>,
    inputs: Vec<Value>,
    expected: Vec<Value>,
}

impl Prepared {
    fn new(
        device: &CpuDevice,
        partition: &dyn Partition,
        graph: &Graph,
        inputs: Vec<Value>,
    ) -> Self {
        let shapes: Vec<Vec<usize>> =
            inputs.iter().map(|input| input.tensor().expect("a tensor").shape().to_vec()).collect();
        let loaded = device.load(&graph.name, graph).expect("it loads");
        let executable = partition.prepare(&*loaded, &shapes).expect("it is prepared");
        let expected = executable.run(&inputs).expect("it runs");
        Self { executable, inputs, expected }
    }

    fn of_zoo(device: &CpuDevice, partition: &dyn Partition, name: &str, batch: usize) -> Self {
        let options = ZooOptions::default();
        let graph = build(name, &options).expect("the zoo has it");
        let inputs = sample_inputs(entry(name).expect("the zoo has it"), &options, batch, 16);
        let inputs = inputs.expect("it takes them").into_iter().map(Value::from).collect();
        Self::new(device, partition, &graph, inputs)
    }

    fn run(&self) {
        let outputs = self.executable.run(&self.inputs).expect("it runs");
        assert!(outputs == self.expected, "what was interrupted computed something else");
    }

    fn interrupt(&self) {
        let outputs = self.executable.interrupt(&self.inputs).expect("it runs");
        assert!(outputs == self.expected, "an interruption computed something else");
    }
}

/// Partitions of one core and of two, where there are two.
fn partitions(device: &CpuDevice) -> Vec<Arc<dyn Partition>> {
    let units = device.units();
    let counts = 1..=units.len().min(2);
    let first = |count| units.iter().take(count).collect::<UnitSet>();
    counts.map(|count| device.partition(&first(count)).expect("it has units")).collect()
}

/// Moments that follow no rhythm.
fn random_pauses(mut seed: u64) -> impl Iterator<Item = Duration> {
    std::iter::repeat_with(move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_micros((seed >> 33) % 500)
    })
}

#[test]
fn interruptions_at_any_moment_change_no_result() {
    let device = CpuDevice::new().expect("there is a CPU");
    for partition in partitions(&device) {
        assert!(device.can_interrupt());
        let prepare = |name, batch| Prepared::of_zoo(&device, &*partition, name, batch);
        let interrupted = [prepare("tiny_resnet", 4), prepare("tiny_bert", 2)];
        let others = [prepare("tiny_mobilenet_v2", 1), prepare("tiny_vit", 1)];
        let interrupting = AtomicUsize::new(2);
        thread::scope(|scope| {
            for (seed, other) in others.iter().enumerate() {
                let (interrupting, interrupted) = (&interrupting, &interrupted);
                scope.spawn(move || {
                    let _end = CountDown(interrupting);
                    for (round, pause) in random_pauses(seed as u64).take(150).enumerate() {
                        thread::sleep(pause);
                        // Now and then a model interrupts itself.
                        match round % 5 {
                            0 => interrupted[seed].interrupt(),
                            _ => other.interrupt(),
                        }
                    }
                });
            }
            while interrupting.load(Ordering::SeqCst) > 0 {
                interrupted.iter().for_each(Prepared::run);
            }
        });
    }
}

/// Counts down even when an assertion fails, since others wait for it.
struct CountDown<'a>(&'a AtomicUsize);

impl Drop for CountDown<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// So many products in a row, each by a matrix that keeps the values in bounds.
fn chain(products: usize) -> Graph {
    const SIDE: usize = 256;
    let mut builder = GraphBuilder::new("chain", 21);
    let mut value = builder.input("x", DataType::F32, &[SIDE, SIDE]);
    let elements = (0..SIDE * SIDE).map(|index| ((index * 7) % 13) as f32 / (6.0 * SIDE as f32));
    let matrix = Tensor::from_vec(vec![SIDE, SIDE], elements.collect()).expect("it has its size");
    let matrix = builder.constant("matrix", matrix);
    for _ in 0..products {
        let product = builder.node("MatMul", &[value, matrix], Attributes::new());
        value = builder.node("Sin", &[product], Attributes::new());
    }
    builder.output("y", value);
    builder.finish().expect("a graph")
}

fn chained(device: &CpuDevice, partition: &dyn Partition, products: usize) -> Prepared {
    let x = Tensor::from_vec(vec![256, 256], vec![0.5f32; 256 * 256]).expect("it has its size");
    Prepared::new(device, partition, &chain(products), vec![x.into()])
}

/// Calls `body` while the executable runs, with a flag that says whether it has ended.
fn beside(prepared: &Prepared, body: impl FnOnce(&AtomicBool)) {
    let start = Instant::now();
    prepared.run();
    let alone = start.elapsed();
    let (begins, has_ended) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            begins.store(true, Ordering::SeqCst);
            prepared.run();
            has_ended.store(true, Ordering::SeqCst);
        });
        while !begins.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        thread::sleep(alone / 8);
        body(&has_ended);
    });
}

#[test]
fn an_interruption_does_not_wait_for_what_runs() {
    let device = CpuDevice::new().expect("there is a CPU");
    for partition in partitions(&device) {
        let (long, short) = (chained(&device, &*partition, 400), chained(&device, &*partition, 5));
        beside(&long, |has_ended| {
            for _ in 0..5 {
                short.interrupt();
                assert!(!has_ended.load(Ordering::SeqCst), "it waited for what it interrupts");
            }
        });
    }
}

#[test]
fn who_interrupts_itself_is_done_before_it() {
    let device = CpuDevice::new().expect("there is a CPU");
    for partition in partitions(&device) {
        let long = chained(&device, &*partition, 200);
        // Both take equally long: one that only shared the cores with its interruption would be done before it.
        beside(&long, |has_ended| {
            long.interrupt();
            assert!(!has_ended.load(Ordering::SeqCst), "it went on while it was interrupted");
        });
    }
}
