//! Which models are served as a group: those that differ in their weights alone, and about which the same is agreed.

use std::sync::Arc;

use weft_device::LoadedModel;
use weft_engine::{EngineModel, Membership};
use weft_ir::{Dimensions, Graph};
use weft_repository::ServerSettings;
use weft_scheduler::plan::Slo;
use weft_scheduler::{GroupId, Profile};

use super::loading::Loader;

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
        let entries = settings.groups.then_some(settings.group_entries).filter(|&most| most > 1);
        let is_new = self.entries != entries;
        if is_new {
            self.entries = entries;
            self.forget();
        }
        is_new
    }

    /// What was measured holds no longer: groups are made anew.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// The models as they are served: those of which at least two are alike as members of a group.
    pub(super) fn join(&mut self, loader: &Loader, candidates: &[Candidate]) -> Vec<EngineModel> {
        let bonds: Vec<Option<Bond>> = candidates.iter().map(Candidate::bond).collect();
        let mut models = Vec::with_capacity(candidates.len());
        for (candidate, bond) in candidates.iter().zip(&bonds) {
            let alike = candidates.iter().zip(&bonds);
            let alike = alike.filter(|(other, its)| its == &bond && !other.is_leaving);
            let members: Vec<&EngineModel> = alike.map(|(other, _)| &other.model).collect();
            let membership = match bond {
                Some(bond) if members.len() > 1 => self.membership(loader, bond, &members),
                _ => None,
            };
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
        let membership = fused.clone().map(|fused| Membership::new(id, entries, apart, fused));
        if self.known.len() >= MAX_KNOWN {
            self.known.remove(0);
        }
        self.known.push(Known { bond: bond.clone(), membership: membership.clone(), fused });
        membership
    }
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
