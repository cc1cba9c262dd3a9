//! The weights of one model in the forms its kernels read, each packed once however many plans use it.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use xxhash_rust::xxh3::xxh3_128;

/// What identifies a packed weight: the content it was made from, and how it was packed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    content: u128,
    len: usize,
    packing: String,
}

/// Packed weights by content: plans for other batch sizes and equal weights share them.
#[derive(Default)]
pub(crate) struct WeightStore {
    packed: Mutex<HashMap<Key, Arc<dyn Any + Send + Sync>>>,
}

impl WeightStore {
    /// The packed form of `weights`, made by `pack` unless it is here already. `packing` names the form and every
    /// parameter that it depends on besides the weights.
    pub(crate) fn get_or_pack<T: Any + Send + Sync>(
        &self,
        weights: &[f32],
        packing: String,
        pack: impl FnOnce() -> T,
    ) -> Arc<T> {
        let key =
            Key { content: xxh3_128(bytemuck::cast_slice(weights)), len: weights.len(), packing };
        let mut packed = self.packed.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = packed.entry(key).or_insert_with(|| Arc::new(pack()));
        entry.clone().downcast().expect("a packing's name determines its type")
    }
}
