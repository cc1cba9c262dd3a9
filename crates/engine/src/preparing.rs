//! The thread that makes partitions and models ready, one after another, beside what is served.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use weft_device::{Buckets, Device, DeviceError, Partition, UnitSet, bucket_sizes};
use weft_scheduler::{ModelId, PartitionId, UnitMask};

use crate::message::{Message, Ready};
use crate::model::EngineModel;

/// What is to be made ready, or let go.
pub(crate) enum Preparation {
    Prepare { partition: PartitionId, units: UnitMask, models: Vec<ModelId> },
    Discard(PartitionId),
}

/// The thread, and the way to it.
pub(crate) struct Preparer {
    tasks: Option<Sender<Preparation>>,
    thread: Option<JoinHandle<()>>,
}

impl Preparer {
    pub(crate) fn start(
        device: Arc<dyn Device>,
        units: UnitSet,
        models: Arc<[EngineModel]>,
        driver: Sender<Message>,
    ) -> std::io::Result<Self> {
        let (tasks, received) = channel();
        let mut bench = Bench { device, units, models, partitions: HashMap::new() };
        let thread = thread::Builder::new()
            .name("weft-prepare".into())
            .spawn(move || bench.work(&received, &driver))?;
        Ok(Self { tasks: Some(tasks), thread: Some(thread) })
    }

    pub(crate) fn send(&self, task: Preparation) {
        // The thread ends only when its sender is dropped.
        if let Some(tasks) = &self.tasks {
            let _ = tasks.send(task);
        }
    }
}

impl Drop for Preparer {
    fn drop(&mut self) {
        self.tasks = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Bench {
    device: Arc<dyn Device>,
    /// All units of the device, by the numbers that the scheduler counts them with.
    units: UnitSet,
    models: Arc<[EngineModel]>,
    partitions: HashMap<PartitionId, Arc<dyn Partition>>,
}

impl Bench {
    fn work(&mut self, tasks: &Receiver<Preparation>, driver: &Sender<Message>) {
        while let Ok(task) = tasks.recv() {
            match task {
                Preparation::Prepare { partition, units, models } => {
                    let ready = self.prepare(partition, units, &models);
                    let _ = driver.send(Message::Prepared(partition, ready));
                }
                Preparation::Discard(partition) => {
                    self.partitions.remove(&partition);
                }
            }
        }
    }

    fn prepare(
        &mut self,
        id: PartitionId,
        units: UnitMask,
        models: &[ModelId],
    ) -> Result<Ready, DeviceError> {
        let partition = match self.partitions.get(&id) {
            Some(partition) => partition.clone(),
            None => {
                let all = self.units.as_slice();
                let units: UnitSet = units.iter().map(|unit| all[unit as usize]).collect();
                let partition = self.device.partition(&units)?;
                self.partitions.insert(id, partition.clone());
                partition
            }
        };
        let ready = |&id: &ModelId| {
            let model = &self.models[id.index()];
            let sizes = bucket_sizes(model.served.largest_batch() as usize);
            let executables =
                Buckets::prepare(&*partition, &*model.loaded, &sizes, &model.dimensions)?;
            Ok((id, Arc::new(executables)))
        };
        let models = models.iter().map(ready).collect::<Result<_, DeviceError>>()?;
        Ok(Ready { partition, models })
    }
}
