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
    /// The packed form of `weights`, made by `pack` unless it is here already; `None` where it cannot be made.
    /// `packing` names the form and every parameter that it depends on besides the weights.
    pub(crate) fn get_or_pack<T: Any + Send + Sync>(
        &self,
        weights: &[f32],
        packing: String,
        pack: impl FnOnce() -> Option<T>,
    ) -> Option<Arc<T>> {
        let key =
            Key { content: xxh3_128(bytemuck::cast_slice(weights)), len: weights.len(), packing };
        let mut packed = self.packed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = packed.get(&key) {
            return Some(known.clone().downcast().expect("a packing's name determines its type"));
        }
        let made = Arc::new(pack()?);
        packed.insert(key, made.clone());
        Some(made)
    }
}
