//! Many devices: models are placed on them, and each is simulated as a world of its own, on all cores at once.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use weft_scheduler::fleet::{NoRoom, Placement, place};
use weft_scheduler::{ModelId, Policy, ServedDevice, Span};

use crate::load::Load;
use crate::outcome::{ModelOutcome, Outcome, Reconfigurations};
use crate::run::run;
use crate::violation::Violation;
use crate::world::World;

/// Keeps the seeds of devices apart; any odd number does that is not the one models are kept apart by.
const SEED_STEP: u64 = 0xD1B5_4A32_D192_ED03;

/// Why a fleet was not simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetError {
    /// Its memory is too small.
    NoRoom(NoRoom),
    /// The policy did what it must not.
    Violation {
        /// On the first device on which it did.
        device: u32,
        /// What it did.
        violation: Violation,
    },
}

/// What came of one device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceOutcome {
    /// How many models it served.
    pub models: usize,
    /// Requests that came to it.
    pub arrived: u64,
    /// Those of them that were answered in time.
    pub in_time: u64,
    /// Unit-seconds in which its units ran something.
    pub busy_unit_seconds: f64,
}

/// What came of a fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetOutcome {
    /// All devices together, by model. Its length is that of the device that was done last.
    pub outcome: Outcome,
    /// By device.
    pub devices: Vec<DeviceOutcome>,
    /// By model: how many devices served it.
    pub replicas: Vec<u32>,
}

/// Runs a policy on each of so many devices like the world's, among which its models are divided. The outcome does not
/// depend on the number of threads.
pub fn run_fleet(
    world: &World,
    devices: u32,
    make: &(dyn Fn(ServedDevice) -> Box<dyn Policy> + Sync),
    threads: NonZeroUsize,
) -> Result<FleetOutcome, FleetError> {
    let mut served = world.served_device();
    for (model, simulated) in served.models.iter_mut().zip(&world.models) {
        // A place is kept for the whole run, whatever the load begins with.
        model.expected_per_s = match simulated.load {
            Load::ClosedLoop { .. } => model.expected_per_s,
            ref load => load.mean_per_s(),
        };
    }
    let placement = place(&served, devices).map_err(FleetError::NoRoom)?;
    let fleet = Fleet::new(world, &placement);
    let merged = Mutex::new(Merged::new(world.models.len(), devices));
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let device = next.fetch_add(1, Ordering::Relaxed);
            if device >= placement.devices.len() {
                return;
            }
            let world = fleet.device(device);
            let outcome = match world.models.is_empty() {
                true => Ok(Outcome::default()),
                false => run(&world, &mut *make(world.served_device())),
            };
            let mut merged = merged.lock().expect("merging does not panic");
            merged.add(device, &placement.devices[device], outcome);
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads.get().min(placement.devices.len()) {
            scope.spawn(work);
        }
    });
    merged.into_inner().expect("merging does not panic").finish(&placement)
}

/// The worlds of a fleet.
struct Fleet<'a> {
    world: &'a World,
    placement: &'a Placement,
    /// By model: the load of each replica.
    loads: Vec<Vec<Load>>,
    /// By device, then as its models are listed: which replica it has.
    replicas: Vec<Vec<usize>>,
}

impl<'a> Fleet<'a> {
    fn new(world: &'a World, placement: &'a Placement) -> Self {
        let loads = world.models.iter().zip(&placement.replicas);
        let mut given = vec![0; world.models.len()];
        let mut give = |model: &ModelId| {
            let replica = &mut given[model.index()];
            *replica += 1;
            *replica - 1
        };
        Self {
            world,
            placement,
            loads: loads.map(|(model, &count)| model.load.split(count)).collect(),
            replicas: placement
                .devices
                .iter()
                .map(|models| models.iter().map(&mut give).collect())
                .collect(),
        }
    }

    fn device(&self, device: usize) -> World {
        let models = self.placement.devices[device].iter().zip(&self.replicas[device]);
        let models = models.map(|(model, &replica)| {
            let mut simulated = self.world.models[model.index()].clone();
            simulated.load = self.loads[model.index()][replica].clone();
            simulated
        });
        // A single device is simulated as it would be without a fleet.
        let step = (device as u64).wrapping_mul(SEED_STEP);
        World {
            models: models.collect(),
            seed: self.world.seed.wrapping_add(step),
            ..self.world.without_models()
        }
    }
}

/// What came of the devices that are done. Counts do not depend on the order in which they are added; what does is kept by
/// device until all are there.
struct Merged {
    models: Vec<ModelOutcome>,
    reconfigurations: Reconfigurations,
    mixed_launches: u64,
    length: Span,
    devices: Vec<Option<DeviceOutcome>>,
    violation: Option<(usize, Violation)>,
}

impl Merged {
    fn new(models: usize, devices: u32) -> Self {
        Self {
            models: vec![ModelOutcome::default(); models],
            reconfigurations: Reconfigurations::default(),
            mixed_launches: 0,
            length: Span::ZERO,
            devices: vec![None; devices as usize],
            violation: None,
        }
    }

    fn add(&mut self, device: usize, models: &[ModelId], outcome: Result<Outcome, Violation>) {
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(violation) => {
                if self.violation.as_ref().is_none_or(|(first, _)| device < *first) {
                    self.violation = Some((device, violation));
                }
                return;
            }
        };
        for (model, one) in models.iter().zip(&outcome.models) {
            self.models[model.index()].merge(one);
        }
        self.reconfigurations.merge(outcome.reconfigurations);
        self.mixed_launches += outcome.mixed_launches;
        self.length = self.length.max(outcome.length);
        self.devices[device] = Some(DeviceOutcome {
            models: models.len(),
            arrived: outcome.models.iter().map(|model| model.arrived).sum(),
            in_time: outcome.models.iter().map(|model| model.in_time).sum(),
            busy_unit_seconds: outcome.busy_unit_seconds,
        });
    }

    fn finish(self, placement: &Placement) -> Result<FleetOutcome, FleetError> {
        if let Some((device, violation)) = self.violation {
            return Err(FleetError::Violation { device: device as u32, violation });
        }
        let devices: Vec<DeviceOutcome> = self.devices.into_iter().flatten().collect();
        Ok(FleetOutcome {
            outcome: Outcome {
                models: self.models,
                busy_unit_seconds: devices.iter().map(|device| device.busy_unit_seconds).sum(),
                length: self.length,
                reconfigurations: self.reconfigurations,
                mixed_launches: self.mixed_launches,
            },
            devices,
            replicas: placement.replicas.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use weft_scheduler::plan::Slo;
    use weft_scheduler::policies::time_sharing;
    use weft_scheduler::{Profile, ProfilePoint};

    use super::*;
    use crate::world::SimulatedModel;

    fn world(rates: &[f64]) -> World {
        let point = |batch, us| ProfilePoint {
            batch,
            units: 4,
            latency: Span::from_us(us),
            dram_bytes: 0.0,
        };
        let profile = Arc::new(Profile::new(&[point(1, 200.0), point(8, 600.0)], 1 << 20).unwrap());
        let model = |&rate_per_s: &f64| SimulatedModel {
            name: "model".into(),
            profile: profile.clone(),
            load: Load::Poisson { rate_per_s },
            slo: Some(Slo { percentile: 0.99, latency: Span::from_us(3000.0) }),
            weight: 1.0,
            priority: 0,
            group: None,
            late: None,
        };
        World {
            models: rates.iter().map(model).collect(),
            units: 4,
            bandwidth_bytes_per_s: 1e12,
            memory_bytes: 8 << 20,
            can_interrupt: false,
            preparation: Span::from_us(100.0),
            preparation_per_model: Span::from_us(1000.0),
            planning: Span::from_us(100_000.0),
            mixes: Vec::new(),
            noise: 0.02,
            length: Span::from_s(0.5),
            seed: 3,
        }
    }

    fn play(world: &World, devices: u32, threads: usize) -> Result<FleetOutcome, FleetError> {
        let make = |device| Box::new(time_sharing(device)) as Box<dyn Policy>;
        run_fleet(world, devices, &make, NonZeroUsize::new(threads).unwrap())
    }

    #[test]
    fn a_fleet_of_one_is_the_device() {
        let world = world(&[500.0, 300.0]);
        let alone = run(&world, &mut time_sharing(world.served_device())).unwrap();
        assert_eq!(play(&world, 1, 1).unwrap().outcome, alone);
    }

    #[test]
    fn the_outcome_does_not_depend_on_threads() {
        let world = world(&[20_000.0, 900.0, 700.0, 400.0, 10.0, 3.0]);
        let one = play(&world, 7, 1).unwrap();
        assert_eq!(one, play(&world, 7, 3).unwrap());
        assert_eq!(one, play(&world, 7, 99).unwrap());
    }

    #[test]
    fn many_devices_carry_what_one_cannot() {
        let world = world(&[30_000.0, 1000.0]);
        let (one, many) = (play(&world, 1, 1).unwrap(), play(&world, 8, 2).unwrap());
        assert!(one.outcome.attainment() < 0.6 && many.outcome.attainment() > 0.99);
        assert!(many.replicas[0] > 3 && many.replicas[1] == 1, "{:?}", many.replicas);
        let total = many.outcome.total();
        assert!((15_000..16_500).contains(&total.arrived), "{}", total.arrived);
        let by_device: u64 = many.devices.iter().map(|device| device.arrived).sum();
        assert_eq!(by_device, total.arrived);
        // Replicas draw their own requests.
        assert_ne!(many.devices[0], many.devices[1]);
    }

    #[test]
    fn a_fleet_without_enough_memory_is_refused() {
        let world = world(&[1.0; 17]);
        assert!(matches!(play(&world, 2, 1), Err(FleetError::NoRoom(_))));
        assert!(play(&world, 3, 1).is_ok());
    }

    #[test]
    fn a_policy_that_breaks_a_rule_is_named_with_its_first_device() {
        struct Idle;
        impl Policy for Idle {
            fn name(&self) -> &'static str {
                "idle"
            }
            fn react(
                &mut self,
                _: weft_scheduler::Event,
                _: weft_scheduler::Time,
                _: &mut Vec<weft_scheduler::Action>,
            ) {
            }
        }
        let make = |_| Box::new(Idle) as Box<dyn Policy>;
        let lost = run_fleet(&world(&[900.0; 4]), 4, &make, NonZeroUsize::new(3).unwrap());
        assert!(matches!(lost, Err(FleetError::Violation { device: 0, .. })), "{lost:?}");
    }
}
