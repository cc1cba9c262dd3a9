//! What each member of a group may have of what the group can carry.
//!
//! # The rule
//!
//! Members of a group run together, so one that sends much does not take turns from the others: it makes the batches
//! longer that they are in. Its *part* is what the lane carries well besides what is asked of it for others than the group,
//! divided among the members that ask for anything in proportion to weights. Who was accepted more of late, by more than
//! chance explains, is *over its part*.
//!
//! While the lane is asked for about as much as it carries, a member that is over its part has a request accepted only
//! if it is answered within `1 - ROOM` of its objective. So batches that have grown by such requests take no longer than
//! that, and whoever comes waits for one of them at most before the one that it runs in: together that leaves a fifth of
//! the objective for what the others bring at once. What a member is promised within its part is as good as anyone's,
//! whatever it sends; and while there is time for all, nobody has a part.

use super::account::Account;

/// The share of the time to its deadline that a request must leave to others where its model is over its part.
const ROOM: f64 = 0.6;
/// The same where others are further over theirs, so that what is left goes by weight too.
const ROOM_BEHIND: f64 = 0.5;
/// What a lane carries with hardly a request lost, as a share of its time in batches of half the objective.
const CARRIED: f64 = 0.8;
/// From so much less than that on, the more is asked for the more room is left.
const MARGIN: f64 = 0.05;
/// Who asks for less than this share of its part if all asked has none: what it leaves is for the others.
const LEAST_ASKED: f64 = 0.1;
/// By how many standard deviations of independent arrivals a member must be above its part to be over it.
const CHANCE: f64 = 3.0;

/// Sets the room that members leave to others of their group, where those with the same place are a group.
pub(super) fn set_room(accounts: &mut [Account], places: &[usize], window_ns: f64) {
    let asked: f64 = accounts.iter().map(Account::demand).sum();
    let weight: f64 = accounts.iter().map(|account| account.weight).sum();
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
        // Requests that were accepted and the part; an exponential average counts over twice its window.
        let counts = |account: &Account| {
            let part = carried * account.weight / asking_weight.max(account.weight);
            account.accepted_beside(part, 2.0 * window_ns)
        };
        let is_over = |(accepted, part): &(f64, f64)| *accepted > part + CHANCE * part.sqrt();
        let over = members().map(|(member, _)| counts(&accounts[member])).filter(is_over);
        let (accepted, part) = over.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let crowding = ((asked - (CARRIED - MARGIN)) / MARGIN).clamp(0.0, 1.0);
        for (member, _) in members() {
            let own = counts(&accounts[member]);
            let room = match own.0 * part < accepted * own.1 {
                true => ROOM_BEHIND,
                false => ROOM,
            };
            accounts[member].room_to_mates = if is_over(&own) { room * crowding } else { 0.0 };
        }
    }
}
