//! The thread of one partition: it runs one batch after another and answers those whose requests were in it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use weft_device::Buckets;
use weft_scheduler::LaunchId;

use crate::message::{Call, Message};

/// A batch to run.
pub(crate) struct Job {
    pub(crate) launch: LaunchId,
    pub(crate) executables: Arc<Buckets>,
    pub(crate) calls: Vec<Call>,
}

/// A partition's thread.
pub(crate) struct Worker {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub(crate) fn start(name: String, driver: Sender<Message>) -> std::io::Result<Self> {
        let (jobs, received) = channel();
        let thread = thread::Builder::new().name(name).spawn(move || work(&received, &driver))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Runs a job after those before it.
    pub(crate) fn run(&self, job: Job) {
        // A worker ends only when its sender is dropped.
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
    }
}

impl Drop for Worker {
    /// Waits until all that was begun has ended.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(jobs: &Receiver<Job>, driver: &Sender<Message>) {
    while let Ok(Job { launch, executables, calls }) = jobs.recv() {
        let (inputs, replies): (Vec<_>, Vec<_>) =
            calls.into_iter().map(|call| (call.inputs, call.reply)).unzip();
        let outputs = executables.run_together(&inputs);
        // The partition is free before answers are written.
        let _ = driver.send(Message::Finished(launch));
        for (reply, outputs) in replies.into_iter().zip(outputs) {
            reply(outputs.map_err(Into::into));
        }
    }
}
