//! Models of a mix in lockstep: steps of different models that are ready together share launches, on all units.

use weft_device::{CompiledMix, DeviceError, MixStep, UnitSet};

use super::model::Part;
use super::{CompiledCudaMix, CudaMix, add};
use crate::bound::BoundLaunch;
use crate::bound_work::BoundWork;
use crate::driver::capture;
use crate::launch::KernelSource;
use crate::shared_launch::{Problem, SharedLaunch, grouped, shared};

/// What runs at one time.
pub(super) enum Turn<'a> {
    /// One step's work.
    Own(&'a BoundWork),
    /// That of several.
    Shared(SharedLaunch),
}

impl CudaMix {
    /// Whether all launches of some steps are shared, as far as there are others to share them with.
    pub(super) fn is_shared(&self, steps: &[MixStep]) -> bool {
        let Ok(work) = self.work(steps) else { return false };
        let longest = work.iter().map(|work| work.len()).max().unwrap_or(0);
        let has_work = steps.len() > 1 && work.iter().all(|work| !work.is_empty());
        has_work && self.turns(&work).len() == longest
    }

    /// Records sets of steps in one stream, one after another.
    pub(super) fn in_lockstep(
        &mut self,
        sets: &[Vec<MixStep>],
    ) -> Result<CompiledMix, DeviceError> {
        let step_counts: Vec<usize> = self.models.iter().map(|model| model.step_count()).collect();
        check(sets, &step_counts)?;
        let all: UnitSet = self.units.iter().flat_map(UnitSet::iter).collect();
        let whole = self.partition(&all)?;
        for model in &mut self.models {
            model.prepare_first(Part::WHOLE.chunks, &whole)?;
        }
        let mut turns = Vec::new();
        for steps in sets {
            turns.extend(self.turns(&self.work(steps)?));
        }
        let kernels = &self.gpu.kernels;
        let source = |turn: &'_ Turn<'_>| match turn {
            Turn::Own(_) => None,
            Turn::Shared(launch) => Some(launch.source.clone()),
        };
        let sources: Vec<KernelSource> = turns.iter().filter_map(source).collect();
        kernels.prepare_all(&sources.iter().collect::<Vec<_>>())?;
        let can_overlap = self.gpu.context.chip().is_hopper_or_later();
        // In order; what is shared is kept here, and the rest by the models.
        let (mut shared, mut order) = (Vec::new(), Vec::with_capacity(turns.len()));
        for turn in turns {
            order.push(match turn {
                Turn::Own(work) => Some(work),
                Turn::Shared(launch) => {
                    let launch = BoundLaunch::of_shared(launch, kernels, can_overlap)?;
                    shared.push(BoundWork::Launch(launch));
                    None
                }
            });
        }
        let mut next_shared = shared.iter();
        let order: Vec<&BoundWork> =
            order.into_iter().filter_map(|own| own.or_else(|| next_shared.next())).collect();
        let loaded = order.iter().filter_map(|work| work.kernel());
        whole.lane.partition.load(loaded)?;
        let graph = capture(&self.stream, |stream| {
            // SAFETY: plans and memory are kept for as long as `self` lives, which alone runs what is recorded, and what is
            // shared is kept beside the graph; steps of a model wait for each other, and no other model has its memory.
            unsafe { add(order.iter().copied(), stream) }
        })?;
        let (token, _partitions, _shared) = (self.token.clone(), vec![whole], shared);
        Ok(CompiledMix::new(CompiledCudaMix { graph, token, _partitions, _shared }))
    }

    /// The work of each step.
    fn work(&self, steps: &[MixStep]) -> Result<Vec<&[BoundWork]>, DeviceError> {
        let all: u32 = self.whole_sm_count;
        let work = |&MixStep { model, step, units }: &MixStep| {
            let sm_count = (all as usize * units / self.units.len()).max(1) as u32;
            let model = self.models.get(model).ok_or_else(|| no_step(model, step))?;
            let found = model.steps(Part::WHOLE, sm_count, step..step + 1)?;
            Ok(found.first().map_or(&[][..], Vec::as_slice))
        };
        steps.iter().map(work).collect()
    }

    /// What steps of different models run as: their first launches share one, then their second ones, and so on.
    fn turns<'a>(&self, work: &[&'a [BoundWork]]) -> Vec<Turn<'a>> {
        let chip = self.gpu.context.chip().with_sms(self.whole_sm_count);
        let longest = work.iter().map(|work| work.len()).max().unwrap_or(0);
        let mut turns = Vec::new();
        for place in 0..longest {
            let here = work.iter().filter_map(|work| work.get(place));
            let (launches, calls): (Vec<&BoundWork>, Vec<&BoundWork>) =
                here.partition(|work| work.launch().is_some());
            turns.extend(calls.into_iter().map(Turn::Own));
            let problems: Vec<Problem<'_>> = launches
                .iter()
                .filter_map(|work| work.launch())
                .map(BoundLaunch::problem)
                .collect();
            for group in grouped(&problems, chip) {
                let of_group: Vec<Problem<'_>> = group.iter().map(|&at| problems[at]).collect();
                turns.push(match shared(&of_group, chip) {
                    Some(launch) => Turn::Shared(launch),
                    None => Turn::Own(launches[group[0]]),
                });
            }
        }
        turns
    }
}

/// Every step of every model once and in order, and no two of one model in a set: these wait for each other.
fn check(sets: &[Vec<MixStep>], step_counts: &[usize]) -> Result<(), DeviceError> {
    let mut done = vec![0; step_counts.len()];
    for set in sets {
        for (place, &MixStep { model, step, .. }) in set.iter().enumerate() {
            let is_next = done.get(model) == Some(&step);
            if !is_next || set[..place].iter().any(|other| other.model == model) {
                return Err(no_step(model, step));
            }
            done[model] += 1;
        }
    }
    match done == step_counts {
        true => Ok(()),
        false => Err(DeviceError::Failed("steps of the mix are missing".to_string())),
    }
}

fn no_step(model: usize, step: usize) -> DeviceError {
    DeviceError::Failed(format!("step {step} of model {model} is not the next of its model"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_a_model_come_in_order_and_each_in_a_set_of_its_own() {
        let of = |sets: &[&[(usize, usize)]]| {
            let step = |&(model, step): &(usize, usize)| MixStep { model, step, units: 1 };
            let sets: Vec<Vec<MixStep>> =
                sets.iter().map(|set| set.iter().map(step).collect()).collect();
            check(&sets, &[2, 1]).map_err(|error| error.to_string())
        };
        assert_eq!(of(&[&[(0, 0), (1, 0)], &[(0, 1)]]), Ok(()));
        assert_eq!(of(&[&[(0, 0)], &[(0, 1)], &[], &[(1, 0)]]), Ok(()));
        assert!(of(&[&[(0, 0), (0, 1)], &[(1, 0)]]).unwrap_err().contains("step 1 of model 0"));
        assert!(of(&[&[(0, 1)], &[(0, 0)], &[(1, 0)]]).unwrap_err().contains("step 1 of model 0"));
        assert!(of(&[&[(0, 0), (1, 0)]]).unwrap_err().contains("missing"));
        assert!(of(&[&[(2, 0)]]).is_err());
    }
}
