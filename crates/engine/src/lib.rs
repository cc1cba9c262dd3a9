//! Models on a device, served in real time by a policy of the scheduler. The policy decides; here is what carries it out.

mod clock;
mod driver;
mod error;
mod message;
mod model;
mod preparing;
mod worker;

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use weft_device::{Device, UnitSet};
use weft_ir::Value;
use weft_scheduler::{ModelId, Policy, ServedDevice};

pub use error::{InferError, StartError};
pub use message::Reply;
pub use model::EngineModel;

use clock::Clock;
use driver::Driver;
use message::{Call, Message};
use preparing::Preparer;

/// The device that an engine serves on.
pub struct EngineDevice {
    /// The device itself.
    pub device: Arc<dyn Device>,
    /// The units that it may use.
    pub units: UnitSet,
    /// Of its memory.
    pub bandwidth_bytes_per_s: f64,
    /// For models.
    pub memory_bytes: u64,
}

/// A running engine. Dropping it ends what was accepted, then stops.
pub struct Engine {
    driver: Sender<Message>,
    thread: Option<JoinHandle<()>>,
    models: Arc<[EngineModel]>,
}

impl Engine {
    /// Loads nothing more, prepares what the policy begins with, and serves.
    pub fn start(
        device: EngineDevice,
        models: Vec<EngineModel>,
        policy: impl FnOnce(ServedDevice) -> Box<dyn Policy>,
    ) -> Result<Self, StartError> {
        let models: Arc<[EngineModel]> = models.into();
        let policy = policy(ServedDevice {
            models: models.iter().map(|model| model.served.clone()).collect(),
            units: u32::try_from(device.units.len()).unwrap_or(u32::MAX),
            bandwidth_bytes_per_s: device.bandwidth_bytes_per_s,
            memory_bytes: device.memory_bytes,
        });
        let (sender, messages) = channel();
        let preparer =
            Preparer::start(device.device, device.units, models.clone(), sender.clone())?;
        let driver = Driver {
            policy,
            clock: Clock::new(),
            slos: models.iter().map(|model| model.served.slo.map(|slo| slo.latency)).collect(),
            preparer,
            sender: sender.clone(),
            state: Default::default(),
        };
        let (begun, has_begun) = channel();
        let thread = thread::Builder::new()
            .name("weft-driver".into())
            .spawn(move || driver.run(&messages, &begun))?;
        let engine = Self { driver: sender, thread: Some(thread), models };
        match has_begun.recv() {
            Ok(outcome) => outcome.map(|()| engine).map_err(Into::into),
            Err(_) => Err(StartError::Ended),
        }
    }

    /// The model of a name.
    pub fn model(&self, name: &str) -> Option<ModelId> {
        let place = self.models.iter().position(|model| model.loaded.name() == name)?;
        u32::try_from(place).ok().map(ModelId)
    }

    /// Takes in a request, with one value per required input; `reply` is called with what comes of it, from a thread
    /// that should not be kept.
    pub fn submit(
        &self,
        model: ModelId,
        inputs: Vec<Value>,
        timeout: Option<Duration>,
        reply: Reply,
    ) {
        let call = Call { inputs, reply };
        let timeout = timeout.map(clock::span);
        if let Err(returned) = self.driver.send(Message::Arrived { model, timeout, call })
            && let Message::Arrived { call, .. } = returned.0
        {
            (call.reply)(Err(InferError::Stopped));
        }
    }

    /// Waits for the answer to one request.
    pub fn infer(&self, model: &str, inputs: Vec<Value>) -> Result<Vec<Value>, InferError> {
        let id = self.model(model).ok_or_else(|| InferError::UnknownModel(model.into()))?;
        let (answer, answered) = channel();
        let reply = Box::new(move |result| {
            let _ = answer.send(result);
        });
        self.submit(id, inputs, None, reply);
        answered.recv().unwrap_or(Err(InferError::Stopped))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.driver.send(Message::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
