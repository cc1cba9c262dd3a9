//! What a search is told of a product's candidates.

use super::problem::Left;
use super::space::Space;
use super::split::Split;
use super::tile::{Multiplier, Tile};
use crate::launch::Traits;

impl Space<'_> {
    /// Where a candidate lies in the space, and what its time depends on; `least` is the shortest estimate of all.
    pub(super) fn traits(&self, tile: &Tile, split: Split, estimate: f64, least: f64) -> Traits {
        let problem = self.problem;
        let (kind, parts) = match split {
            Split::None => (0, 1),
            Split::Cluster(parts) => (1, parts),
            Split::Workspace(parts) => (2, parts),
        };
        let is_warpgroup = tile.multiplier == Multiplier::Warpgroup;
        let integer = |value: usize| i32::try_from(value).unwrap_or(i32::MAX);
        let parameters = vec![
            Traits::TEMPLATE,
            i32::from(is_warpgroup),
            i32::from(tile.is_bulk),
            integer(tile.m),
            integer(tile.n),
            integer(tile.warps_m),
            integer(tile.warps_n),
            integer(tile.stages),
            kind,
            integer(parts),
        ];
        let steps = problem.steps().div_ceil(parts);
        let tiles = problem.m.div_ceil(tile.m) * problem.n.div_ceil(tile.n) * problem.stack;
        let at_once = tile.blocks_per_sm(steps, self.chip);
        let turns = (tiles * parts) as f64 / f64::from(self.chip.sm_count);
        let waves = turns / at_once as f64;
        let covered =
            (problem.m * problem.n * problem.stack) as f64 / (tiles * tile.m * tile.n) as f64;
        let taps = match problem.left {
            Left::Matrix { .. } => 0,
            Left::Image(image) => image.kernel[0] * image.kernel[1],
        };
        let log = |value: usize| (value.max(1) as f64).log2();
        let features = [
            f64::from(Traits::TEMPLATE),
            log(problem.m),
            log(problem.n),
            log(problem.k),
            log(problem.stack),
            taps as f64,
            problem.element_bytes() as f64,
            f64::from(self.chip.sm_count).log2(),
            f64::from(u8::from(is_warpgroup)),
            f64::from(u8::from(tile.is_bulk)),
            log(tile.m),
            log(tile.n),
            log(tile.threads()),
            tile.stages as f64,
            f64::from(kind),
            log(parts),
            log(steps),
            turns.log2(),
            waves.ceil() / waves,
            turns.ceil() / turns,
            at_once as f64,
            covered,
            tile.shared_bytes(steps) as f64 / 1024.0,
            (estimate / least).ln(),
        ];
        Traits { parameters, features: features.map(|value| value as f32).to_vec() }
    }
}
