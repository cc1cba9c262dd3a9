//! When requests are due: all instants of all models that wait for nobody, drawn before the first is sent.

use weft_scheduler::{Span, Time};
use weft_simulator::{Arrivals, Load};

use crate::error::LoadError;

/// The most requests of one run whose instants are drawn beforehand.
const MAX_DRAWN: usize = 20_000_000;

/// One request that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due {
    /// From the beginning of the run.
    pub(crate) at: Time,
    /// The place of its model among the run's.
    pub(crate) model: u32,
}

/// The instants of a run, in order; loads whose clients wait for answers have none.
pub(crate) fn draw<'a>(
    loads: impl IntoIterator<Item = &'a Load>,
    length: Span,
    seed: u64,
) -> Result<Vec<Due>, LoadError> {
    draw_up_to(MAX_DRAWN, loads, length, seed)
}

/// Deals instants out in turns, so that each has its share of every burst; each stays in order.
pub(crate) fn deal(drawn: Vec<Due>, hands: usize) -> Vec<Vec<Due>> {
    let mut dealt = vec![Vec::with_capacity(drawn.len().div_ceil(hands)); hands];
    for (due, hand) in drawn.into_iter().zip((0..hands).cycle()) {
        dealt[hand].push(due);
    }
    dealt
}

fn draw_up_to<'a>(
    limit: usize,
    loads: impl IntoIterator<Item = &'a Load>,
    length: Span,
    seed: u64,
) -> Result<Vec<Due>, LoadError> {
    let end = Time::after_start(length);
    let mut all: Vec<Due> = Vec::new();
    for (model, load) in (0..).zip(loads) {
        let room = limit - all.len();
        let arrivals = Arrivals::new(load, seed, model).take_while(|&at| at < end);
        all.extend(arrivals.map(|at| Due { at, model }).take(room + 1));
        if all.len() > limit {
            return Err(LoadError::TooManyRequests { limit });
        }
    }
    all.sort_unstable();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_instants_again_and_another_seed_does_not() {
        let loads = [
            Load::Poisson { rate_per_s: 300.0 },
            Load::Gamma { rate_per_s: 100.0, burstiness: 4.0 },
            Load::ClosedLoop { clients: 4, think: Span::ZERO },
        ];
        let draw = |seed| draw(&loads, Span::from_s(10.0), seed).unwrap();
        let first = draw(1);
        assert_eq!(first, draw(1));
        assert_ne!(first, draw(2));
        assert!(first.is_sorted() && first.iter().all(|due| due.model < 2));
        let of_first = first.iter().filter(|due| due.model == 0).count();
        assert!((2800..3200).contains(&of_first), "{of_first}");
        assert!(first.last().unwrap().at < Time::after_start(Span::from_s(10.0)));
    }

    #[test]
    fn all_instants_are_dealt_once_and_in_order() {
        let drawn = draw(&[Load::Poisson { rate_per_s: 100.0 }], Span::from_s(1.0), 1).unwrap();
        for hands in [1, 3, 200] {
            let dealt = deal(drawn.clone(), hands);
            assert_eq!(dealt.len(), hands);
            assert!(dealt.iter().all(|hand| hand.is_sorted()));
            assert!(dealt.iter().all(|hand| hand.len() <= drawn.len().div_ceil(hands)));
            let mut all = dealt.concat();
            all.sort_unstable();
            assert_eq!(all, drawn);
        }
    }

    #[test]
    fn more_than_fits_is_refused_and_not_drawn() {
        let loads = [500.0, 1e15].map(|rate_per_s| Load::Gamma { rate_per_s, burstiness: 0.0 });
        let second = Span::from_s(1.001);
        let refused = draw_up_to(1000, &loads, second, 1);
        assert!(matches!(refused, Err(LoadError::TooManyRequests { limit: 1000 })));
        assert!(draw_up_to(500, &loads[..1], second, 1).is_ok());
        assert!(draw_up_to(499, &loads[..1], second, 1).is_err());
    }
}
