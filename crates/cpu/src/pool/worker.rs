//! Owns what a worker offers to the code it runs: its place in the pool, shared loops, barriers and scratch memory.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};

use super::barrier::Barrier;
use super::gate::Gate;
use crate::{AlignedBuffer, Isa};

/// The gate of workers that nothing interrupts.
static ALWAYS_OPEN: Gate = Gate::open();

/// One thread's part in a run.
pub struct Worker<'pool> {
    index: usize,
    isa: Isa,
    /// Absent for a worker without companions.
    barrier: Option<&'pool Barrier>,
    /// Where it sleeps while its pool is interrupted.
    gate: &'pool Gate,
    in_task: Cell<bool>,
    spare: RefCell<Vec<AlignedBuffer>>,
}

impl<'pool> Worker<'pool> {
    pub(super) fn new(index: usize, isa: Isa, barrier: &'pool Barrier, gate: &'pool Gate) -> Self {
        let barrier = (barrier.count() > 1).then_some(barrier);
        Self { index, isa, barrier, gate, in_task: Cell::new(false), spare: RefCell::default() }
    }

    /// A worker without companions that runs on the calling thread.
    pub fn solo(isa: Isa) -> Worker<'static> {
        Worker {
            index: 0,
            isa,
            barrier: None,
            gate: &ALWAYS_OPEN,
            in_task: Cell::new(false),
            spare: RefCell::default(),
        }
    }

    /// Runs `body` as a worker without companions would, on this thread: it sleeps when this worker would, and has its
    /// scratch memory.
    pub fn apart<R>(&self, body: impl FnOnce(&Worker) -> R) -> R {
        self.as_another(0, None, body)
    }

    /// Runs `body` as a worker with this place among others, who meet at a barrier of their own.
    pub(super) fn among<R>(
        &self,
        barrier: &Barrier,
        index: usize,
        body: impl FnOnce(&Worker) -> R,
    ) -> R {
        self.as_another(index, (barrier.count() > 1).then_some(barrier), body)
    }

    fn as_another<R>(
        &self,
        index: usize,
        barrier: Option<&Barrier>,
        body: impl FnOnce(&Worker) -> R,
    ) -> R {
        assert!(!self.in_task.get(), "a task of a parallel loop is apart already");
        let other = Worker {
            index,
            isa: self.isa,
            barrier,
            gate: self.gate,
            in_task: Cell::new(false),
            spare: RefCell::new(self.spare.take()),
        };
        let result = body(&other);
        self.spare.replace(other.spare.take());
        result
    }

    /// Which worker of the run this is, from zero.
    pub fn index(&self) -> usize {
        self.index
    }

    /// How many workers take part in the run.
    pub fn count(&self) -> usize {
        self.barrier.map_or(1, Barrier::count)
    }

    /// The instruction set to use.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Waits until every worker of the run is here. What they wrote before is visible after.
    pub fn barrier(&self) {
        assert!(!self.in_task.get(), "a task of a parallel loop cannot wait for other workers");
        self.gate.pass();
        if let Some(barrier) = self.barrier {
            barrier.wait(self.gate);
        }
    }

    /// Shares `task_count` tasks among the workers and waits until all are done.
    ///
    /// Every worker of the run makes the same call; each task number in `0..task_count` is passed to exactly one of
    /// them. What the tasks wrote is visible to every worker afterwards.
    #[inline]
    pub fn parallel(&self, task_count: usize, mut task: impl FnMut(usize)) {
        assert!(!self.in_task.get(), "a task of a parallel loop cannot start another one");
        let Some(barrier) = self.barrier else {
            for index in 0..task_count {
                self.gate.pass();
                task(index);
            }
            return;
        };
        self.in_task.set(true);
        let leave = LeaveTask(&self.in_task);
        loop {
            self.gate.pass();
            let index = barrier.claim();
            if index >= task_count {
                break;
            }
            task(index);
        }
        drop(leave);
        barrier.wait(self.gate);
    }

    /// A buffer of `elements` values, aligned to 64 bytes, whose contents are whatever was left there.
    ///
    /// It returns to the worker when dropped and is reused by later calls; buffers held at the same time are distinct.
    ///
    /// # Panics
    ///
    /// If memory is exhausted, which ends the run with an error.
    pub fn scratch(&self, elements: usize) -> Scratch<'_> {
        let mut buffer = self.spare.borrow_mut().pop().unwrap_or(AlignedBuffer::empty());
        if buffer.len() < elements {
            drop(buffer);
            buffer = AlignedBuffer::zeroed(elements)
                .unwrap_or_else(|error| panic!("scratch memory: {error}"));
        }
        Scratch { buffer, elements, home: &self.spare }
    }
}

/// Clears the flag even when the task panics, since the worker lives on.
struct LeaveTask<'a>(&'a Cell<bool>);

impl Drop for LeaveTask<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Memory borrowed from a worker.
pub struct Scratch<'worker> {
    buffer: AlignedBuffer,
    elements: usize,
    home: &'worker RefCell<Vec<AlignedBuffer>>,
}

impl Deref for Scratch<'_> {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.buffer[..self.elements]
    }
}

impl DerefMut for Scratch<'_> {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.buffer[..self.elements]
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        let buffer = std::mem::replace(&mut self.buffer, AlignedBuffer::empty());
        self.home.borrow_mut().push(buffer);
    }
}
