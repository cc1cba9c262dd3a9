//! Shared, immutable element storage: owned by the heap, or a view of a mapped file.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bytemuck::Pod;
use bytes::Bytes;

/// A cheaply cloned, immutable sequence of elements.
#[derive(Clone)]
pub struct Array<T> {
    storage: Storage<T>,
}

#[derive(Clone)]
enum Storage<T> {
    Owned(Arc<Vec<T>>),
    /// Bytes whose length and alignment fit `T`, and how to read them.
    Mapped(Bytes, fn(&[u8]) -> &[T]),
    /// Bytes whose alignment does not fit `T`; copied when they are first read, by each clone made before for itself.
    Unaligned(Bytes, OnceLock<Arc<Vec<T>>>, fn(&[u8]) -> Vec<T>),
}

impl<T: Pod> Array<T> {
    /// A view of `bytes`, or `None` where their length does not fit `T`. Where their alignment does not fit, the
    /// elements are copied when they are first read, and not before: models are larger than what is read of them at once.
    pub fn from_bytes(bytes: Bytes) -> Option<Self> {
        if bytemuck::try_cast_slice::<u8, T>(&bytes).is_ok() {
            return Some(Self { storage: Storage::Mapped(bytes, bytemuck::cast_slice) });
        }
        let fits = size_of::<T>() > 0 && bytes.len().is_multiple_of(size_of::<T>());
        let copy = bytemuck::allocation::pod_collect_to_vec::<u8, T>;
        fits.then(|| Self { storage: Storage::Unaligned(bytes, OnceLock::new(), copy) })
    }
}

impl<T: Clone> Array<T> {
    /// The elements as a vector of one's own; copies only where others share them.
    pub fn into_vec(self) -> Vec<T> {
        match self.storage {
            Storage::Owned(shared) => {
                Arc::try_unwrap(shared).unwrap_or_else(|shared| shared.to_vec())
            }
            Storage::Mapped(bytes, view) => view(&bytes).to_vec(),
            Storage::Unaligned(bytes, mut copy, read) => match copy.take() {
                Some(shared) => Arc::try_unwrap(shared).unwrap_or_else(|shared| shared.to_vec()),
                None => read(&bytes),
            },
        }
    }
}

impl<T> Array<T> {
    /// How many elements there are; asking does not copy them.
    pub fn len(&self) -> usize {
        match &self.storage {
            Storage::Owned(elements) => elements.len(),
            Storage::Mapped(bytes, _) | Storage::Unaligned(bytes, ..) => {
                bytes.len() / size_of::<T>().max(1)
            }
        }
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that the elements are read from, where they are not owned.
    pub fn source_bytes(&self) -> Option<&Bytes> {
        match &self.storage {
            Storage::Owned(_) => None,
            Storage::Mapped(bytes, _) | Storage::Unaligned(bytes, ..) => Some(bytes),
        }
    }

    /// True where reading the elements copies them out of [`Array::source_bytes`].
    pub fn is_copied_when_read(&self) -> bool {
        matches!(self.storage, Storage::Unaligned(..))
    }
}

impl<T> From<Vec<T>> for Array<T> {
    fn from(elements: Vec<T>) -> Self {
        Self { storage: Storage::Owned(Arc::new(elements)) }
    }
}

impl<T> Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.storage {
            Storage::Owned(elements) => elements,
            Storage::Mapped(bytes, view) => view(bytes),
            Storage::Unaligned(bytes, copy, read) => copy.get_or_init(|| Arc::new(read(bytes))),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().take(16)).finish()
    }
}

impl<T: PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_viewed_where_aligned_and_copied_on_reading_where_not() {
        let mut content = vec![0u8];
        content.extend_from_slice(bytemuck::cast_slice::<f32, u8>(&[1.0, 2.0]));
        let bytes = Bytes::from(content);
        let arrays = [0, 1, 2, 3].map(|shift| {
            // One of four neighbouring starts is aligned for f32.
            let mut padded = vec![0u8; shift];
            padded.extend_from_slice(&bytes[1..]);
            Array::<f32>::from_bytes(Bytes::from(padded).slice(shift..)).unwrap()
        });
        assert!(arrays.iter().any(|array| array.is_copied_when_read()));
        assert!(arrays.iter().any(|array| !array.is_copied_when_read()));
        for array in &arrays {
            let before = array.clone();
            assert_eq!((array.len(), before.len()), (2, 2));
            assert_eq!(&**array, &[1.0, 2.0]);
            assert_eq!(&*before, &[1.0, 2.0]);
        }
        assert!(Array::<f32>::from_bytes(bytes.slice(1..7)).is_none());
    }

    #[test]
    fn into_vec_leaves_other_owners_alone() {
        let array = Array::from(vec![1, 2, 3]);
        let other = array.clone();
        assert_eq!(array.into_vec(), vec![1, 2, 3]);
        assert_eq!(&*other, &[1, 2, 3]);
    }
}
