//! The queues of a lane: one for each model, or one for all members of a group, whose requests run together, and one for
//! each of its members, for requests that run apart from the others'.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use super::lane_model::LaneModel;
use crate::identity::ModelId;
use crate::request::Request;
use crate::time::Span;

/// Requests with a deadline that may run together.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// The first of those whose requests these are. Latencies are looked up for it, since all of a group have the same.
    pub(super) model: ModelId,
    /// Its number as a member of the lane.
    pub(super) first: usize,
    /// Their objective.
    pub(super) slo: Option<Span>,
    /// In the order in which they run.
    pub(super) requests: VecDeque<Request>,
}

/// The queues by their places, and which of them each model has.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    list: Vec<Queue>,
    /// The models by id, each with the place of its queue. A model's index in this list is its number as a member.
    members: Vec<(ModelId, usize)>,
    /// By member, the place of the queue for what runs apart: the same where it is in no group.
    apart: Vec<usize>,
}

impl Queues {
    /// Empty queues for models that are sorted by id, none twice.
    pub(super) fn new(models: &[LaneModel]) -> Self {
        let mut list: Vec<Queue> = Vec::new();
        let queue = |first: usize| Queue {
            model: models[first].model,
            first,
            slo: models[first].slo,
            requests: VecDeque::new(),
        };
        let mut members: Vec<(ModelId, usize)> = Vec::with_capacity(models.len());
        for (member, model) in models.iter().enumerate() {
            let is_mate = |other: &LaneModel| other.group.is_some() && other.group == model.group;
            // Only models before this one have a place.
            let mate = models.iter().zip(&members).find(|(other, _)| is_mate(other));
            let place = mate.map_or(list.len(), |(_, (_, place))| *place);
            if place == list.len() {
                list.push(queue(member));
            }
            members.push((model.model, place));
        }
        let apart = models.iter().zip(&members).enumerate().map(|(member, (model, (_, place)))| {
            if model.group.is_none() {
                return *place;
            }
            list.push(queue(member));
            list.len() - 1
        });
        let apart = apart.collect();
        Self { list, members, apart }
    }

    /// A model's number; `None` where it does not run here.
    pub(super) fn member(&self, model: ModelId) -> Option<usize> {
        self.members.binary_search_by_key(&model, |(other, _)| *other).ok()
    }

    /// The place of a member's queue.
    pub(super) fn place(&self, member: usize) -> usize {
        self.members[member].1
    }

    /// The place of the queue for a member's requests that run apart from those of its group.
    pub(super) fn place_apart(&self, member: usize) -> usize {
        self.apart[member]
    }

    /// By member, the places of their queues.
    pub(super) fn places(&self) -> Vec<usize> {
        self.members.iter().map(|(_, place)| *place).collect()
    }

    /// By member, how many of its requests wait.
    pub(super) fn waiting(&self) -> Vec<usize> {
        let mut waiting = vec![0; self.members.len()];
        for request in self.list.iter().flat_map(|queue| &queue.requests) {
            if let Some(member) = self.member(request.model) {
                waiting[member] += 1;
            }
        }
        waiting
    }

    /// Takes out all that waits.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Request> {
        self.list.iter_mut().flat_map(|queue| queue.requests.drain(..))
    }
}

impl Index<usize> for Queues {
    type Output = Queue;

    fn index(&self, place: usize) -> &Queue {
        &self.list[place]
    }
}

impl IndexMut<usize> for Queues {
    fn index_mut(&mut self, place: usize) -> &mut Queue {
        &mut self.list[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::GroupId;

    #[test]
    fn members_of_a_group_share_a_queue_and_others_have_their_own() {
        let model = |(id, group): (u32, Option<u32>)| LaneModel {
            model: ModelId(id),
            slo: None,
            weight: 1.0,
            priority: 0,
            group: group.map(GroupId),
        };
        let models = [(2, None), (3, Some(7)), (5, Some(4)), (6, Some(7)), (8, None)].map(model);
        let queues = Queues::new(&models);
        assert_eq!(queues.places(), [0, 1, 2, 1, 3]);
        assert_eq!(queues.member(ModelId(6)), Some(3));
        assert_eq!(queues.member(ModelId(4)), None);
        assert_eq!((queues[1].model, queues[3].model), (ModelId(3), ModelId(8)));
        let apart: Vec<usize> = (0..5).map(|member| queues.place_apart(member)).collect();
        assert_eq!(apart, [0, 4, 5, 6, 3]);
        assert_eq!((queues[6].model, queues[6].first), (ModelId(6), 3));
    }
}
