//! The whole device as one partition that runs one batch at a time: what policies that know no partitions share.

use crate::identity::ModelId;
use crate::policy::{Action, LaunchId, PartitionId};
use crate::request::Request;
use crate::served::ServedDevice;
use crate::time::{Span, Time};
use crate::unit_mask::UnitMask;

const WHOLE: PartitionId = PartitionId(0);

/// One partition of all units.
pub(super) struct WholeDevice {
    units: UnitMask,
    models: Vec<ModelId>,
    is_active: bool,
    running: Option<Running>,
    next_launch: u64,
}

/// A batch on the device.
pub(super) struct Running {
    launch: LaunchId,
    pub(super) model: ModelId,
    pub(super) batch: u32,
    pub(super) started: Time,
    expected: Span,
    /// How long it takes says nothing of others.
    pub(super) teaches_nothing: bool,
}

impl WholeDevice {
    pub(super) fn new(device: &ServedDevice) -> Self {
        Self {
            units: UnitMask::range(0, device.units),
            models: (0..device.models.len() as u32).map(ModelId).collect(),
            is_active: false,
            running: None,
            next_launch: 0,
        }
    }

    /// Makes all models ready.
    pub(super) fn prepare(&self, actions: &mut Vec<Action>) {
        let models = self.models.clone();
        actions.push(Action::Prepare { partition: WHOLE, units: self.units, models });
    }

    /// All models are ready.
    pub(super) fn activate(&mut self, actions: &mut Vec<Action>) {
        if !self.is_active {
            actions.push(Action::Activate(WHOLE));
        }
        self.is_active = true;
    }

    /// Whether a batch may be launched.
    pub(super) fn is_free(&self) -> bool {
        self.is_active && self.running.is_none()
    }

    /// When what runs is expected to end.
    pub(super) fn free_at(&self, now: Time) -> Time {
        self.running.as_ref().map_or(now, |running| running.started + running.expected).max(now)
    }

    /// Runs requests of one model together; the device must be free.
    pub(super) fn launch(
        &mut self,
        requests: &[Request],
        expected: Span,
        now: Time,
        actions: &mut Vec<Action>,
    ) {
        assert!(self.is_free(), "one batch at a time");
        let launch = LaunchId(self.next_launch);
        self.next_launch += 1;
        let (model, batch) = (requests[0].model, requests.len() as u32);
        let (started, teaches_nothing) = (now, false);
        let running = Running { launch, model, batch, started, expected, teaches_nothing };
        self.running = Some(running);
        let requests = requests.iter().map(|request| request.id).collect();
        actions.push(Action::Launch {
            launch,
            partition: WHOLE,
            model,
            mix: None,
            requests,
            expected,
        });
    }

    /// How long a launch takes says nothing of others.
    pub(super) fn teaches_nothing(&mut self, launch: LaunchId) {
        if let Some(running) = self.running.as_mut().filter(|running| running.launch == launch) {
            running.teaches_nothing = true;
        }
    }

    /// What has ended, where it was the launch that runs.
    pub(super) fn finish(&mut self, launch: LaunchId) -> Option<Running> {
        self.running.take_if(|running| running.launch == launch)
    }
}
