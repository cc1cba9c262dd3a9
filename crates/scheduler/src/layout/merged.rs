//! Models as a partition plan sees them: the members of a group run together, so they are one model.

use std::sync::Arc;

use crate::identity::ModelId;
use crate::served::{ServedDevice, ServedModel};

/// One for each model without a group and one for each group, by the first member: with the rates of all members together,
/// what their requests are worth on average, and the memory that all of them take.
pub(super) fn merged(device: &ServedDevice, per_s: &[f64]) -> Vec<(ModelId, ServedModel)> {
    let mut merged: Vec<(ModelId, ServedModel)> = Vec::new();
    let models = device.models.iter().zip(per_s).zip(device.leads());
    for ((model, &expected_per_s), lead) in models {
        match merged.iter_mut().find(|(other, _)| *other == lead) {
            None => merged.push((lead, ServedModel { expected_per_s, ..model.clone() })),
            Some((_, group)) => {
                let together_per_s = group.expected_per_s + expected_per_s;
                if together_per_s > 0.0 {
                    let worth = group.weight * group.expected_per_s + model.weight * expected_per_s;
                    group.weight = worth / together_per_s;
                }
                group.expected_per_s = together_per_s;
                let memory_bytes = &mut Arc::make_mut(&mut group.profile).memory_bytes;
                *memory_bytes = memory_bytes.saturating_add(model.profile.memory_bytes);
            }
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::GroupId;
    use crate::policies::device_with;

    #[test]
    fn a_group_is_one_model_with_the_load_and_the_memory_of_all() {
        let mut device = device_with(&[(10.0, 5.0), (20.0, 7.0), (30.0, 5.0), (0.0, 9.0)], 4);
        for (member, weight) in [(0, 1.0), (2, 3.0)] {
            device.models[member].group = Some(GroupId(1));
            device.models[member].weight = weight;
        }
        let bytes = device.models[0].profile.memory_bytes;
        let found = merged(&device, &[100.0, 20.0, 300.0, 0.0]);
        let ids: Vec<u32> = found.iter().map(|(model, _)| model.0).collect();
        assert_eq!(ids, [0, 1, 3]);
        let (group, other) = (&found[0].1, &found[1].1);
        assert_eq!((group.expected_per_s, group.weight), (400.0, 2.5));
        assert_eq!(group.profile.memory_bytes, 2 * bytes);
        assert_eq!((other.expected_per_s, other.profile.memory_bytes), (20.0, bytes));
    }
}
