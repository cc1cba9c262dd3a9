//! The mixes of a policy: which are ready, and that what it launches as one is all of it.

use weft_scheduler::{LaunchId, MixId, ModelId, Span, UnitMask};

use crate::violation::Violation;
use crate::world::SimulatedMix;

struct Mix {
    id: MixId,
    units: UnitMask,
    models: Vec<(ModelId, u32)>,
    is_ready: bool,
}

/// All mixes that were asked for and not forgotten.
#[derive(Default)]
pub(crate) struct Mixes {
    mixes: Vec<Mix>,
}

impl Mixes {
    /// A mix is about to be regulated.
    pub(crate) fn ask(&mut self, id: MixId, units: UnitMask, models: Vec<(ModelId, u32)>) {
        self.mixes.push(Mix { id, units, models, is_ready: false });
    }

    /// A mix was regulated; false where it was forgotten meanwhile.
    pub(crate) fn make_ready(&mut self, id: MixId) -> bool {
        let mix = self.mixes.iter_mut().find(|mix| mix.id == id);
        mix.map(|mix| mix.is_ready = true).is_some()
    }

    pub(crate) fn forget(&mut self, id: MixId) {
        self.mixes.retain(|mix| mix.id != id);
    }

    /// How long a mix takes that is launched with requests of these models.
    pub(crate) fn launch(
        &self,
        launch: LaunchId,
        id: MixId,
        units: UnitMask,
        mut requested: Vec<ModelId>,
        known: &[SimulatedMix],
    ) -> Result<Span, Violation> {
        let is_it = |mix: &&Mix| mix.id == id && mix.units == units && mix.is_ready;
        let unknown = Violation::UnknownMix { launch, mix: id };
        let Some(mix) = self.mixes.iter().find(is_it) else { return Err(unknown) };
        requested.sort_unstable();
        let counted = requested.chunk_by(|one, other| one == other);
        let models: Vec<(ModelId, u32)> = counted.map(|own| (own[0], own.len() as u32)).collect();
        if models != mix.models {
            return Err(Violation::NotAllOfMix { launch, mix: id });
        }
        let known = known.iter().find(|known| known.models == models).ok_or(unknown)?;
        Ok(known.latency)
    }
}
