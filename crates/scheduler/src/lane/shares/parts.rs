//! What each member of a group may have of what the group can carry.
//!
//! # The rule
//!
//! Members of a group run together, so one that sends much does not take turns from the others: it makes the batches
//! longer that they are in. Its *part* is what the lane carries well besides what is asked of it for others than the group,
//! divided among the members that ask for anything in proportion to weights. Who asks for more than that, by more than chance
//! explains, *floods*.
//!
//! While the lane is asked for about as much as it carries, a member that floods and has been accepted more than its part of late has a request
//! accepted only if it is answered within little more than the time that it would take alone: where it begins at once, or joins a
//! batch that is about to begin. How little follows from how far it is above its part, little by little, so that what it gets of its
//! part comes evenly and not at once. What a member is promised within its part is as good as anyone's, whatever it sends;
//! and while the lane has time for all, nobody has a part.

use super::account::Account;

/// Within how many times the time that it takes alone a request is answered whose model has more than its part.
const TIMES_ALONE: f64 = 1.75;
/// The share of the time to its deadline that such a request leaves to others, at the least and at the most.
const ROOM: std::ops::RangeInclusive<f64> = 0.5..=0.9;
/// How much less where others are further above theirs, so that what is left goes by weight too.
const ROOM_BEHIND: f64 = 0.1;
/// What a lane carries with hardly a request lost, as a share of its time in batches of half the objective.
const CARRIED: f64 = 0.8;
/// From so much less than that on, the more is asked for the more room is left.
const MARGIN: f64 = 0.05;
/// Who asks for less than this share of its part if all asked has none: what it leaves is for the others.
const LEAST_ASKED: f64 = 0.1;
/// By how many standard deviations of independent arrivals a member must be above its part to be surely over it.
const CHANCE: f64 = 3.0;

/// Sets the room that members leave to others of their group, where those with the same place are a group.
pub(super) fn set_room(accounts: &mut [Account], places: &[usize], window_ns: f64) {
    let asked: f64 = accounts.iter().map(Account::demand).sum();
    let weight: f64 = accounts.iter().map(|account| account.weight).sum();
    let crowding = ((asked - (CARRIED - MARGIN)) / MARGIN).clamp(0.0, 1.0);
    let groups = places.iter().max().map_or(0, |last| last + 1);
    for place in 0..groups {
        let members = || places.iter().enumerate().filter(move |(_, other)| **other == place);
        if members().count() < 2 {
            continue;
        }
        let own =
            |of: fn(&Account) -> f64| members().map(|(member, _)| of(&accounts[member])).sum();
        let (own_asked, own_weight): (f64, f64) = (own(Account::demand), own(|it| it.weight));
        let carried = (CARRIED - (asked - own_asked)).max(CARRIED * own_weight / weight);
        let asks = |account: &Account| {
            account.demand() > LEAST_ASKED * carried * account.weight / own_weight
        };
        let asking = members().map(|(member, _)| &accounts[member]).filter(|it| asks(it));
        let asking_weight: f64 = asking.map(|account| account.weight).sum();
        // An exponential average counts over twice its window.
        let counted_ns = 2.0 * window_ns;
        let counts = |account: &Account| {
            let part = carried * account.weight / asking_weight.max(account.weight);
            Counts::of(account, part, counted_ns)
        };
        let over = members().map(|(member, _)| counts(&accounts[member])).filter(Counts::is_over);
        let (accepted, part) =
            over.fold((0.0, 0.0), |sum, one| (sum.0 + one.accepted, sum.1 + one.part));
        for (member, _) in members() {
            let account = &mut accounts[member];
            let own = counts(account);
            let is_behind = own.accepted * part < accepted * own.part;
            let room = 1.0 - TIMES_ALONE * account.alone_share();
            let room = room.clamp(*ROOM.start(), *ROOM.end());
            let room = if is_behind { room - ROOM_BEHIND } else { room };
            account.room_to_mates = room * crowding * own.excess();
        }
    }
}

/// Requests of a member in the time that averages are taken over.
struct Counts {
    asked: f64,
    accepted: f64,
    /// As many as its part would be.
    part: f64,
}

impl Counts {
    fn of(account: &Account, part: f64, time_ns: f64) -> Self {
        let (accepted, part) = account.accepted_beside(part, time_ns);
        Self { asked: account.asked_in(time_ns), accepted, part }
    }

    /// What chance alone may add to its part.
    fn chance(&self) -> f64 {
        (CHANCE * self.part.sqrt()).max(1.0)
    }

    /// More was accepted than its part, and surely so.
    fn is_over(&self) -> bool {
        self.accepted > self.part + self.chance()
    }

    /// Where it asks for more than its part, and surely so: how far it is on the way from having that to surely having more.
    fn excess(&self) -> f64 {
        match self.asked > self.part + self.chance() {
            true => ((self.accepted - self.part) / self.chance()).clamp(0.0, 1.0),
            false => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_grows_with_what_was_accepted_and_only_for_those_that_ask_for_much() {
        let excess = |asked, accepted| Counts { asked, accepted, part: 16.0 }.excess();
        assert_eq!(excess(100.0, 10.0), 0.0, "it has less than its part");
        assert_eq!(excess(100.0, 22.0), 0.5);
        assert_eq!(excess(100.0, 60.0), 1.0);
        assert_eq!(excess(28.0, 28.0), 0.0, "chance may bring as many");
    }
}
