//! What services have learned, for those that come in their place.

use std::collections::HashMap;
use std::sync::Arc;

use weft_scheduler::{Layout, Learned, LearnedModel, Profile};

use crate::model::{EngineModel, ModelKey};
use crate::service::{Layer, Service};

/// By layer: how large its partitions are, and what is known of its models.
pub(crate) struct Inheritance(Vec<Legacy>);

struct Legacy {
    layer: Layer,
    layout: Option<Layout>,
    models: HashMap<ModelKey, (Arc<Profile>, LearnedModel)>,
}

impl Inheritance {
    pub(crate) fn of(services: &[Service]) -> Self {
        let serve = services.iter().filter(|service| !service.models.is_empty());
        let legacy = |service: &Service| {
            let Learned { layout, models } = service.policy.learned();
            let known = service.models.iter().zip(models).filter_map(|(model, learned)| {
                Some((model.key, (model.served.profile.clone(), learned?)))
            });
            Legacy { layer: service.layer, layout, models: known.collect() }
        };
        Self(serve.map(legacy).collect())
    }

    /// What there is to know of the models of a layer.
    pub(crate) fn of_layer(&self, layer: Layer, models: &[EngineModel]) -> Learned {
        let Some(legacy) = self.0.iter().find(|legacy| legacy.layer == layer) else {
            return Learned::default();
        };
        let learned = |model: &EngineModel| {
            let (profile, learned) = legacy.models.get(&model.key)?;
            // What was learned in relation to another profile says nothing about this one.
            (*profile == model.served.profile).then(|| learned.clone())
        };
        Learned { layout: legacy.layout.clone(), models: models.iter().map(learned).collect() }
    }
}
