//! The weights of one model in the forms its kernels read: each is on the device once, whatever the number of plans
//! and partitions that use it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_device::DeviceError;
use weft_ir::Tensor;
use xxhash_rust::xxh3::xxh3_128;

use crate::Storage;
use crate::launch::{DeviceWeights, WeightMemory};
use crate::plan::transfer::encode;

/// What identifies weights on the device: the content they were made from, and the form they were brought into.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    content: u128,
    len: usize,
    form: String,
}

/// Weights on the device by content: plans for other batch sizes, other partitions and equal weights share them.
pub struct WeightStore {
    memory: Arc<dyn WeightMemory>,
    known: Mutex<HashMap<Key, Arc<Slot>>>,
    /// What was hashed since something was last released, by where its elements lie, which they do as long as it is here: the plans
    /// of a group ask for the same ones.
    hashed: Mutex<HashMap<usize, (Tensor, u128)>>,
}

/// Where weights will be; who makes them holds the lock, so that nobody makes them a second time.
type Slot = Mutex<Option<Arc<DeviceWeights>>>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WeightStore {
    /// An empty store that puts weights into `memory`.
    pub fn new(memory: Arc<dyn WeightMemory>) -> Self {
        Self { memory, known: Mutex::default(), hashed: Mutex::default() }
    }

    /// `tensor` in the form that `make` gives it, made and copied to the device unless it is there already. `form`
    /// names the form and every parameter that it depends on besides the tensor's content.
    pub fn get_or_make(
        &self,
        tensor: &Tensor,
        form: String,
        make: impl FnOnce(&[f32]) -> Vec<u8>,
    ) -> Result<Arc<DeviceWeights>, DeviceError> {
        let elements =
            tensor.elements::<f32>().map_err(|error| DeviceError::Failed(error.to_string()))?;
        let content = self.content(tensor, elements);
        self.get_or_store(Key { content, len: elements.len(), form }, || Ok(make(elements)))
    }

    /// `tensor` with its elements stored as `storage`, copied to the device unless it is there already.
    pub fn get_or_copy(
        &self,
        tensor: &Tensor,
        storage: Storage,
    ) -> Result<Arc<DeviceWeights>, DeviceError> {
        let encoded = |storage: Storage| {
            encode(tensor, storage).map_err(|error| DeviceError::Failed(error.to_string()))
        };
        // What is given says which it is, so that nothing is converted that is there already.
        let exact = Storage::exact(tensor.data_type()).unwrap_or(storage);
        let given = encoded(exact)?;
        let key = Key {
            content: xxh3_128(&given),
            len: given.len(),
            form: format!("elements of {} as {}", exact.cuda_name(), storage.cuda_name()),
        };
        self.get_or_store(key, || Ok(encoded(storage)?.into_owned()))
    }

    fn content(&self, tensor: &Tensor, elements: &[f32]) -> u128 {
        let place = elements.as_ptr() as usize;
        if let Some((known, content)) = locked(&self.hashed).get(&place)
            && known.shape().iter().product::<usize>() == elements.len()
        {
            return *content;
        }
        let content = xxh3_128(bytemuck::cast_slice(elements));
        locked(&self.hashed).insert(place, (tensor.clone(), content));
        content
    }

    /// Frees the forms that no plan uses: those of candidates that were not chosen.
    pub fn release_unused(&self) {
        self.forget_hashed();
        locked(&self.known).retain(|_, slot| {
            // One that nobody else knows of is not being made.
            let is_idle = Arc::strong_count(slot) == 1;
            let is_used = || locked(slot).as_ref().is_some_and(|one| Arc::strong_count(one) > 1);
            !is_idle || is_used()
        });
    }

    /// Lets go of tensors that were asked for.
    pub(crate) fn forget_hashed(&self) {
        locked(&self.hashed).clear();
    }

    fn get_or_store(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<Vec<u8>, DeviceError>,
    ) -> Result<Arc<DeviceWeights>, DeviceError> {
        let slot = locked(&self.known).entry(key).or_default().clone();
        let mut weights = locked(&slot);
        if let Some(weights) = &*weights {
            return Ok(weights.clone());
        }
        let made = Arc::new(self.memory.store(&make()?)?);
        *weights = Some(made.clone());
        Ok(made)
    }

    /// Bytes on the device.
    pub fn size_bytes(&self) -> usize {
        let slots: Vec<Arc<Slot>> = locked(&self.known).values().cloned().collect();
        slots.iter().filter_map(|slot| Some(locked(slot).as_ref()?.size_bytes)).sum()
    }
}

/// Memory that keeps nothing: for plans that are made where there is no GPU.
#[derive(Debug, Default)]
pub struct NoMemory;

impl WeightMemory for NoMemory {
    fn store(&self, bytes: &[u8]) -> Result<DeviceWeights, DeviceError> {
        Ok(DeviceWeights { address: 0, size_bytes: bytes.len(), memory: Box::new(()) })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn equal_content_in_one_form_is_there_once() {
        let store = WeightStore::new(Arc::new(NoMemory));
        let tensor = |first: f32| Tensor::vector(vec![first, 2.0, 3.0, 4.0]);
        let copy = |tensor: &Tensor, storage| store.get_or_copy(tensor, storage).unwrap();
        let halves = copy(&tensor(1.0), Storage::F16);
        assert!(Arc::ptr_eq(&halves, &copy(&tensor(1.0), Storage::F16)));
        let floats = copy(&tensor(1.0), Storage::F32);
        let others = copy(&tensor(5.0), Storage::F16);
        assert_eq!(store.size_bytes(), halves.size_bytes + floats.size_bytes + others.size_bytes);
        assert_eq!(store.size_bytes(), 8 + 16 + 8);
    }

    #[test]
    fn those_who_ask_at_once_share_what_one_of_them_makes() {
        let store = WeightStore::new(Arc::new(NoMemory));
        let tensor = Tensor::vector(vec![1.0f32; 100]);
        let made = AtomicUsize::new(0);
        let make = |_: &[f32]| {
            made.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(std::time::Duration::from_millis(20));
            vec![0; 7]
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| store.get_or_make(&tensor, "form".to_string(), make).unwrap());
            }
        });
        assert_eq!((made.into_inner(), store.size_bytes()), (1, 7));
    }

    #[test]
    fn tensors_are_held_until_something_is_released_and_told_apart_by_their_content() {
        let store = WeightStore::new(Arc::new(NoMemory));
        let make = |tensor: &Tensor| {
            let bytes = |elements: &[f32]| bytemuck::cast_slice(elements).to_vec();
            store.get_or_make(tensor, "form".to_string(), bytes).unwrap()
        };
        let kept = make(&Tensor::vector(vec![1.0f32; 64]));
        for value in 0..100 {
            // Where one is gone, another may lie in its place.
            let tensor = Tensor::vector(vec![value as f32; 64]);
            assert_eq!(Arc::ptr_eq(&kept, &make(&tensor)), value == 1, "{value}");
            if value % 10 == 0 {
                store.forget_hashed();
            }
        }
        assert!(!locked(&store.hashed).is_empty());
        store.release_unused();
        assert!(locked(&store.hashed).is_empty());
    }

    #[test]
    fn what_nothing_uses_is_freed() {
        let store = WeightStore::new(Arc::new(NoMemory));
        let kept = store.get_or_copy(&Tensor::vector(vec![1i64, 2]), Storage::I64).unwrap();
        drop(store.get_or_copy(&Tensor::vector(vec![3i64, 4]), Storage::I64).unwrap());
        assert_eq!(store.size_bytes(), 32);
        store.release_unused();
        assert_eq!(store.size_bytes(), kept.size_bytes);
    }
}
