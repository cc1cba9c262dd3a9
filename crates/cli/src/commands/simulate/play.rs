//! One policy's run, and looking on while it lasts.

use std::fs::File;
use std::io::BufWriter;
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, anyhow};
use weft_scheduler::policies::KnownPolicy;
use weft_scheduler::{PartitionId, PredictionError, Refusal, Request, Time, UnitMask};
use weft_simulator::{
    DeviceOutcome, Executed, FleetError, FleetOutcome, Observer, Outcome, TraceEvents, World,
    run_fleet, run_observed,
};

use super::layout::Layout;
use super::series::Series;
use crate::progress;
use crate::workload::Workload;

/// What came of a policy, and what was seen.
pub(super) struct Played {
    pub(super) policy: &'static KnownPolicy,
    pub(super) outcome: Outcome,
    /// How far its latest predictions of latencies were off, on one device.
    pub(super) prediction_error: Option<PredictionError>,
    pub(super) seen: Seen,
}

/// What was seen besides the outcome.
pub(super) enum Seen {
    /// Of one device, how it went on.
    Device { series: Series, layout: Layout },
    /// Of many, what came of each, and by how many each model was served.
    Fleet { devices: Vec<DeviceOutcome>, replicas: Vec<u32> },
}

impl Played {
    /// The share of the units' time in which they ran something, on all devices.
    pub(super) fn busy(&self, world: &World) -> f64 {
        let devices = match &self.seen {
            Seen::Device { .. } => 1,
            Seen::Fleet { devices, .. } => devices.len(),
        };
        self.busy_share(world, self.outcome.busy_unit_seconds / devices as f64)
    }

    /// The share of one device's time that so many unit-seconds are.
    pub(super) fn busy_share(&self, world: &World, unit_seconds: f64) -> f64 {
        unit_seconds / (f64::from(world.units) * self.outcome.length.seconds().max(1e-9))
    }

    /// Answers in time per second.
    pub(super) fn goodput_per_s(&self, world: &World) -> f64 {
        self.outcome.total().in_time as f64 / world.length.seconds()
    }
}

/// Runs a policy on each device of a fleet.
pub(super) fn play_fleet(workload: &Workload, known: &'static KnownPolicy) -> Result<Played> {
    let threads = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let make = |device| known.make(device);
    let played = run_fleet(&workload.world, workload.devices, &make, threads);
    let FleetOutcome { outcome, devices, replicas } = played.map_err(|error| match error {
        FleetError::NoRoom(no_room) => {
            let name = &workload.world.models[no_room.model.index()].name;
            anyhow!("'{name}' finds no memory on any of {} devices", no_room.devices)
        }
        FleetError::Violation { device, violation } => {
            anyhow!("policy {} broke a rule on device {device}: {violation:?}", known.name)
        }
    })?;
    let seen = Seen::Fleet { devices, replicas };
    Ok(Played { policy: known, outcome, prediction_error: None, seen })
}

/// Runs a policy on one device; `place` says which of how many it is, for who waits.
pub(super) fn play(
    world: &World,
    known: &'static KnownPolicy,
    place: &str,
    trace: Option<&Path>,
) -> Result<Played> {
    let cannot_write = |path: &Path| format!("cannot write {}", path.display());
    let opened = trace.map(|path| File::create(path).with_context(|| cannot_write(path)));
    let names = world.models.iter().map(|model| model.name.as_str());
    let mut watch = Watch {
        place,
        shown: None,
        series: Series::new(Time::START, world.length),
        layout: Layout::default(),
        trace: opened.transpose()?.map(|file| TraceEvents::new(BufWriter::new(file), 0, names)),
    };
    watch.show(Time::START);
    let mut policy = known.make(world.served_device());
    let outcome = run_observed(world, &mut *policy, &mut watch)
        .map_err(|violation| anyhow!("policy {} broke a rule: {violation:?}", known.name))?;
    let end = Time::after_start(outcome.length);
    let Watch { series, mut layout, trace: events, .. } = watch;
    layout.finish(end);
    if let (Some(events), Some(path)) = (events, trace) {
        events.finish(end).with_context(|| cannot_write(path))?;
    }
    let prediction_error = policy.prediction_error();
    Ok(Played { policy: known, outcome, prediction_error, seen: Seen::Device { series, layout } })
}

/// Notes what is needed for the report, tells who waits how far the run is, and writes the trace.
struct Watch<'a> {
    place: &'a str,
    /// The percentage that was shown last.
    shown: Option<u32>,
    series: Series,
    layout: Layout,
    trace: Option<TraceEvents<BufWriter<File>>>,
}

impl Watch<'_> {
    fn show(&mut self, now: Time) {
        let percent = (self.series.progress(now) * 100.0) as u32;
        if self.shown.replace(percent) != Some(percent) {
            progress::show(format!("simulating {}: {percent} %", self.place));
        }
    }
}

impl Observer for Watch<'_> {
    fn arrived(&mut self, request: &Request) {
        self.show(request.arrived);
        self.series.arrive(request);
        if let Some(trace) = &mut self.trace {
            trace.arrived(request);
        }
    }

    fn refused(&mut self, request: &Request, why: Refusal, now: Time) {
        self.series.drop(request.id);
        if let Some(trace) = &mut self.trace {
            trace.refused(request, why, now);
        }
    }

    fn shed(&mut self, request: &Request, now: Time) {
        self.series.drop(request.id);
        if let Some(trace) = &mut self.trace {
            trace.shed(request, now);
        }
    }

    fn executed(&mut self, executed: Executed<'_>) {
        for &request in executed.requests {
            self.series.answer(request, executed.end);
        }
        let length = executed.end.since(executed.start);
        self.layout.run(executed.partition, executed.model, length);
        if let Some(trace) = &mut self.trace {
            trace.executed(executed);
        }
    }

    fn preparing(&mut self, partition: PartitionId, units: UnitMask, now: Time, until: Time) {
        if let Some(trace) = &mut self.trace {
            trace.preparing(partition, units, now, until);
        }
    }

    fn activated(&mut self, partition: PartitionId, units: UnitMask, now: Time) {
        self.layout.activate(partition, units, now);
        if let Some(trace) = &mut self.trace {
            trace.activated(partition, units, now);
        }
    }

    fn deactivated(&mut self, partition: PartitionId, units: UnitMask, now: Time) {
        self.layout.deactivate(partition, now);
        if let Some(trace) = &mut self.trace {
            trace.deactivated(partition, units, now);
        }
    }
}
