//! How a lane's time is divided among its models, and what room each must leave to others.

use super::account::Account;
use crate::time::Span;

/// A model asks for more than its share if it is by more than this; less is a matter of measurement.
const TOLERANCE: f64 = 0.02;
/// `ln(1 / e) / 2` in the formula of the module above: room for all but a hundredth of what comes.
const ROOM_FACTOR: f64 = 2.3;
/// Where less than this share of the time is left over, room is as for this.
const LEAST_LEFT: f64 = 1e-3;

/// Sets the share of every account: max-min fairness by weight, class by class, the first of which comes first.
pub(super) fn share_out(accounts: &mut [Account], classes: &[Vec<usize>]) {
    let mut left = 1.0;
    for class in classes {
        let mut open = class.clone();
        loop {
            let weights: f64 = open.iter().map(|&member| accounts[member].weight).sum();
            let (before, per_weight) = (open.len(), left / weights);
            open.retain(|&member| {
                let account = &mut accounts[member];
                account.share = account.demand().min(per_weight * account.weight);
                let is_content = account.share == account.demand();
                left -= if is_content { account.share } else { 0.0 };
                !is_content
            });
            if open.len() == before {
                break;
            }
        }
        if !open.is_empty() {
            left = 0.0;
        }
    }
    for account in accounts {
        account.asks_for_more = account.demand() > account.share * (1.0 + TOLERANCE);
    }
}

/// Sets the room that every account must leave: to those of earlier classes, and if it asks for more than its share, to
/// those of its class that do not; when it has more than its share, to those of its class that have less. Those with the
/// same place run together, and leave no room to each other.
pub(super) fn set_room(accounts: &mut [Account], classes: &[Vec<usize>], places: &[usize]) {
    let mut earlier: Vec<usize> = Vec::new();
    for class in classes {
        for &member in class {
            let account = &accounts[member];
            let is_protected = |other: &Account, is_ahead: bool| {
                account.asks_for_more && (!other.asks_for_more || (is_ahead && !other.is_ahead()))
            };
            let room = |is_ahead: bool| {
                let in_class = class.iter().filter(|&&other| places[other] != places[member]);
                let in_class = in_class.map(|&other| &accounts[other]);
                let in_class = in_class.filter(|other| is_protected(other, is_ahead));
                let in_earlier = earlier.iter().map(|&other| &accounts[other]);
                Room::to(in_earlier.chain(in_class), account)
            };
            let (behind, ahead) = (room(false), room(true));
            (accounts[member].room, accounts[member].room_ahead) = (behind, ahead);
        }
        earlier.extend(class);
    }
}

/// The room that a model must leave to others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    /// For what they bring at once.
    at_once_ns: f64,
    /// For what will come and be due before the request: this share of the time to its deadline, less some.
    rate: f64,
    less_ns: f64,
    /// The most that it may be of the time to the deadline.
    most: f64,
}

impl Room {
    fn to<'a>(others: impl Iterator<Item = &'a Account>, account: &Account) -> Self {
        let mut room = Self::default();
        let mut longest_launch_ns: f64 = 0.0;
        for other in others.filter(|other| other.share > 0.0) {
            let slo = other.slo.unwrap_or(Span::MAX).min(account.slo.unwrap_or(Span::MAX));
            let takes = other.takes();
            room.rate += takes;
            room.less_ns += takes * slo.nanos() as f64;
            longest_launch_ns = longest_launch_ns.max(other.launch_ns);
        }
        room.at_once_ns = ROOM_FACTOR * longest_launch_ns / (1.0 - room.rate).max(LEAST_LEFT);
        room.most = if room.rate > 0.0 { room.rate / (room.rate + account.share) } else { 0.0 };
        room
    }

    /// For a request with so much time to its deadline.
    pub(super) fn before(self, time_left: Span) -> Span {
        let left_ns = time_left.nanos() as f64;
        let due_before_ns = (self.rate * left_ns - self.less_ns).max(0.0);
        Span::from_nanos((self.at_once_ns + due_before_ns).min(self.most * left_ns) as u64)
    }
}
