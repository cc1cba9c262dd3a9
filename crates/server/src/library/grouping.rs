//! Which models are served as a group: those that differ in their weights alone, and about which the same is agreed.

use std::sync::Arc;

use weft_device::LoadedModel;
use weft_engine::{EngineModel, Membership};
use weft_ir::{Dimensions, Graph};
use weft_repository::ServerSettings;
use weft_scheduler::plan::Slo;
use weft_scheduler::{GroupId, Profile};

use super::loading::Loader;

/// How many times as fast as one after another entries must be in one launch for a group that nobody has asked for: its
/// members have no larger batches of their own.
const LEAST_GAIN: f64 = 1.5;

/// Groups that are remembered, with their profiles; past these the oldest is measured again where it comes back.
const MAX_KNOWN: usize = 1024;

/// What decides how long a model takes, and by which kernels it is computed, apart from its weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Likeness(String);

impl Likeness {
    pub(super) fn of(graph: &Graph, dimensions: &Dimensions, precision: &str) -> Self {
        Self(format!("{:032x} {dimensions:?} {precision}", graph.structure()))
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

/// A model that is to be served, and may be a member of a group.
#[derive(Clone)]
pub(super) struct Candidate {
    pub(super) model: EngineModel,
    /// None of a model that is like no other.
    pub(super) likeness: Option<Likeness>,
    /// It is served no more, and makes no group: a version that takes the place of another is like it.
    pub(super) is_leaving: bool,
}

impl Candidate {
    /// What members of a group have in common.
    fn bond(&self) -> Option<Bond> {
        let (slo, priority) = (self.model.served.slo, self.model.served.priority);
        self.likeness.clone().map(|likeness| Bond { likeness, slo, priority })
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Bond {
    likeness: Likeness,
    slo: Option<Slo>,
    priority: u8,
}

/// Groups that there are, or were: a group that comes back is the same.
#[derive(Default)]
pub(super) struct Groups {
    /// How many entries a launch takes at most; none where there are to be no groups.
    entries: Option<u32>,
    /// Groups are made whatever they gain.
    is_asked: bool,
    known: Vec<Known>,
    next: u32,
}

struct Known {
    bond: Bond,
    /// None where the device cannot make a group of them.
    membership: Option<Membership>,
    fused: Option<Arc<Profile>>,
}

impl Groups {
    /// What is agreed from now on; says whether that is something else.
    pub(super) fn follow(&mut self, settings: &ServerSettings) -> bool {
        let (is_allowed, is_asked) =
            (settings.groups != Some(false), settings.groups == Some(true));
        let entries = is_allowed.then_some(settings.group_entries).filter(|&most| most > 1);
        let is_new = (self.entries, self.is_asked) != (entries, is_asked);
        if is_new {
            (self.entries, self.is_asked) = (entries, is_asked);
            self.forget();
        }
        is_new
    }

    /// What was measured holds no longer: groups are made anew.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// The models as they are served: those of which at least two are alike as members of a group, where there is so much
    /// memory left for groups. Groups come after models: one that does not fit beside them is none.
    pub(super) fn join(
        &mut self,
        loader: &Loader,
        candidates: &[Candidate],
        free_bytes: u64,
    ) -> Vec<EngineModel> {
        let bonds: Vec<Option<Bond>> = candidates.iter().map(Candidate::bond).collect();
        let mut models = Vec::with_capacity(candidates.len());
        let mut room = Room { free_bytes, groups: Vec::new() };
        for (candidate, bond) in candidates.iter().zip(&bonds) {
            let alike = candidates.iter().zip(&bonds);
            let alike = alike.filter(|(other, its)| its == &bond && !other.is_leaving);
            let members: Vec<&EngineModel> = alike.map(|(other, _)| &other.model).collect();
            let membership = match bond {
                Some(bond) if members.len() > 1 => self.membership(loader, bond, &members),
                _ => None,
            };
            let membership = membership.filter(|membership| room.has(membership));
            let model = candidate.model.clone();
            models.push(match membership {
                Some(membership) => model.in_group(membership),
                None => model,
            });
        }
        models
    }

    /// Members in these groups cannot be served: they are served apart from now on.
    pub(super) fn give_up(&mut self, models: &[EngineModel]) {
        let ids: Vec<GroupId> = models.iter().filter_map(|model| model.served.group).collect();
        for known in &mut self.known {
            known.membership.take_if(|membership| ids.contains(&membership.id()));
        }
    }

    fn membership(
        &mut self,
        loader: &Loader,
        bond: &Bond,
        members: &[&EngineModel],
    ) -> Option<Membership> {
        let entries = self.entries.filter(|_| loader.can_group())?;
        if let Some(known) = self.known.iter().find(|known| known.bond == *bond) {
            return known.membership.clone();
        }
        let same = self.known.iter().find(|known| known.bond.likeness == bond.likeness);
        let fused = match same {
            Some(same) => same.fused.clone(),
            None => measured(loader, &bond.likeness, members, entries),
        };
        let id = GroupId(self.next);
        self.next += 1;
        let apart = members[0].served.profile.clone();
        let worthwhile = fused.clone().filter(|fused| self.is_asked || gains_much(fused, &apart));
        let membership = worthwhile.map(|fused| Membership::new(id, entries, apart, fused));
        if self.known.len() >= MAX_KNOWN {
            self.known.remove(0);
        }
        self.known.push(Known { bond: bond.clone(), membership: membership.clone(), fused });
        membership
    }
}

/// What all groups that models are in take of the device's memory, besides what the models take.
pub(super) fn memory_bytes(models: &[EngineModel]) -> u64 {
    let mut groups: Vec<(GroupId, u64)> = models
        .iter()
        .filter_map(|model| model.group.as_ref())
        .map(|membership| (membership.id(), membership.memory_bytes()))
        .collect();
    groups.sort_unstable();
    groups.dedup();
    groups.iter().map(|(_, memory_bytes)| memory_bytes).sum()
}

/// Memory for groups.
struct Room {
    free_bytes: u64,
    /// Those that have been asked about, and whether they fit.
    groups: Vec<(GroupId, bool)>,
}

impl Room {
    /// Whether there is room for a group, which has it from then on.
    fn has(&mut self, membership: &Membership) -> bool {
        if let Some((_, fits)) = self.groups.iter().find(|(id, _)| *id == membership.id()) {
            return *fits;
        }
        let left_bytes = self.free_bytes.checked_sub(membership.memory_bytes());
        self.free_bytes = left_bytes.unwrap_or(self.free_bytes);
        self.groups.push((membership.id(), left_bytes.is_some()));
        if left_bytes.is_none() {
            let (memory_bytes, free_bytes) = (membership.memory_bytes(), self.free_bytes);
            tracing::info!(memory_bytes, free_bytes, "no room for a group, served apart");
        }
        left_bytes.is_some()
    }
}

/// Whether the most entries in one launch take so much less than one after another, on however many units.
fn gains_much(fused: &Profile, apart: &Profile) -> bool {
    let Some(&most) = fused.batches().last() else { return false };
    let gain = |&units: &u32| {
        let one_after_another = apart.latency(1, units).nanos() as f64 * f64::from(most);
        one_after_another / fused.latency(most, units).nanos().max(1) as f64
    };
    fused.units().iter().map(gain).all(|gain| gain >= LEAST_GAIN)
}

fn measured(
    loader: &Loader,
    likeness: &Likeness,
    members: &[&EngineModel],
    entries: u32,
) -> Option<Arc<Profile>> {
    let first = members[0].loaded.name();
    let loaded: Vec<Arc<dyn LoadedModel>> =
        members.iter().map(|member| member.loaded.clone()).collect();
    let profile = loader.group_profile(likeness, &loaded, (&members[0].dimensions, entries));
    match profile {
        Ok(profile) => {
            tracing::info!(first, members = members.len(), "a group");
            Some(Arc::new(profile))
        }
        Err(error) => {
            tracing::info!(first, %error, "models that are alike are served apart");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_scheduler::{ProfilePoint, Span};

    use super::*;

    fn profile(points: &[(u32, u32, u64)]) -> Profile {
        let point = |&(batch, units, us): &(u32, u32, u64)| ProfilePoint {
            batch,
            units,
            latency: Span::from_nanos(us * 1000),
            dram_bytes: 0.0,
        };
        Profile::new(&points.iter().map(point).collect::<Vec<_>>(), 0).unwrap()
    }

    #[test]
    fn a_group_must_gain_on_any_number_of_units() {
        let apart = profile(&[(1, 1, 100), (1, 2, 60)]);
        let fused = |on_one| profile(&[(1, 1, 100), (8, 1, on_one), (1, 2, 60), (8, 2, 200)]);
        assert!(gains_much(&fused(500), &apart));
        assert!(!gains_much(&fused(700), &apart), "no gain on one unit");
    }
}
