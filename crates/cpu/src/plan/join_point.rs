//! Until where a batch is best computed in parts: cores that each compute a part wait for nobody, but every core reads all weights.

use super::ExecutionPlan;
use super::steps::StepGroup;

/// What a core computes in a microsecond, in floating-point operations, and what all of them bring from memory, in bytes. What
/// counts is how they compare.
const FLOPS_PER_US: f64 = 6e4;
const BYTES_PER_US: f64 = 1.6e4;
/// How much longer than its share of the work a step takes that all cores compute, and what meeting after it takes, in microseconds.
const TOGETHERNESS: f64 = 1.08;
const MEETING_US: f64 = 4.0;

/// What a group of steps computes and reads, for the whole batch.
#[derive(Clone, Copy, Debug)]
struct Work {
    steps: usize,
    flops: f64,
    weight_bytes: f64,
}

impl Work {
    /// In microseconds, by all of so many cores.
    fn together_us(&self, cores: f64) -> f64 {
        let compute = self.flops / FLOPS_PER_US / cores * TOGETHERNESS;
        compute.max(self.weight_bytes / BYTES_PER_US) + self.steps as f64 * MEETING_US
    }

    /// In microseconds, where each core has a part of the batch.
    fn apart_us(&self, cores: f64) -> f64 {
        let compute = self.flops / FLOPS_PER_US / cores;
        compute.max(self.weight_bytes * cores / BYTES_PER_US)
    }
}

/// The group of steps from which on a plan is best run by all of so many cores together.
pub(super) fn join_point(plan: &ExecutionPlan, groups: &[StepGroup], cores: usize) -> usize {
    let work = |(steps, _): &StepGroup| Work {
        steps: steps.len(),
        flops: plan.report.steps[steps.clone()].iter().map(|step| step.flops as f64).sum(),
        weight_bytes: plan.steps[steps.clone()]
            .iter()
            .map(|step| step.kernel.weight_bytes() as f64)
            .sum(),
    };
    let work: Vec<Work> = groups.iter().map(work).collect();
    best_of(&work, cores, |group| plan.can_join(group, groups))
}

fn best_of(work: &[Work], cores: usize, can_join: impl Fn(usize) -> bool) -> usize {
    let cores = cores as f64;
    let total = |until: usize| {
        let (apart, together) = work.split_at(until);
        apart.iter().map(|work| work.apart_us(cores)).sum::<f64>()
            + together.iter().map(|work| work.together_us(cores)).sum::<f64>()
    };
    let possible = (0..=work.len()).filter(|until| can_join(*until));
    possible.min_by(|one, other| total(*one).total_cmp(&total(*other))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONVOLUTION: Work = Work { steps: 1, flops: 4e8, weight_bytes: 1e6 };
    const WIDE: Work = Work { steps: 1, flops: 4e8, weight_bytes: 1e8 };

    #[test]
    fn parts_end_before_weights_that_every_core_would_read_for_itself() {
        let join = |work: &[Work]| best_of(work, 2, |_| true);
        assert_eq!(join(&[CONVOLUTION; 3]), 3);
        assert_eq!(join(&[CONVOLUTION, CONVOLUTION, WIDE]), 2);
        assert_eq!(join(&[WIDE, CONVOLUTION]), 0);
        assert_eq!(join(&[]), 0);
    }

    #[test]
    fn parts_end_where_they_can_be_put_together() {
        let work = [CONVOLUTION, CONVOLUTION, CONVOLUTION, WIDE];
        assert_eq!(best_of(&work, 4, |until| until != 3), 2);
        assert_eq!(best_of(&work, 4, |until| until == 0), 0);
    }
}
