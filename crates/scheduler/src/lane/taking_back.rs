//! Taking back: requests of a call that a lane has accepted leave it as if they had never come, where another one of the call is
//! refused.

use super::agenda::Agenda;
use super::interruption::Occupant;
use super::{Lane, Prospect};
use crate::time::Time;

/// What a lane was going to do before requests of a call came to it.
pub(crate) struct LaneBefore {
    agenda: Agenda,
    busy_until: Time,
    busy_deviation_ns: f64,
    occupant: Option<Occupant>,
}

impl Lane {
    /// What it is going to do, to go back to.
    pub(crate) fn before(&self) -> LaneBefore {
        LaneBefore {
            agenda: self.agenda.clone(),
            busy_until: self.busy_until,
            busy_deviation_ns: self.busy_deviation_ns,
            occupant: self.occupant,
        }
    }

    /// Forgets the requests that came last, with these prospects. Nothing else has happened since they came.
    pub(crate) fn take_back(&mut self, before: LaneBefore, accepted: &[Prospect]) {
        for Prospect { newcomer, spot, .. } in accepted {
            self.waiting -= 1;
            if spot.is_none() {
                self.best_effort.take_back(newcomer.member);
                continue;
            }
            self.queues[newcomer.place].requests.pop_back();
            if newcomer.place == self.queues.place(newcomer.member) {
                self.shares.take_back_arrival(newcomer.member);
            }
        }
        let LaneBefore { agenda, busy_until, busy_deviation_ns, occupant } = before;
        self.agenda = agenda;
        (self.busy_until, self.busy_deviation_ns) = (busy_until, busy_deviation_ns);
        self.occupant = occupant;
    }
}
