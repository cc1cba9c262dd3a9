//! Shared, immutable element storage: owned by the heap, or a view of a mapped file.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

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
    Mapped(Bytes, fn(&[u8]) -> &[T], PhantomData<T>),
}

impl<T: Pod> Array<T> {
    /// A view of `bytes` without copying, or `None` where length or alignment do not fit `T`.
    pub fn from_bytes(bytes: Bytes) -> Option<Self> {
        bytemuck::try_cast_slice::<u8, T>(&bytes).ok()?;
        Some(Self { storage: Storage::Mapped(bytes, bytemuck::cast_slice, PhantomData) })
    }
}

impl<T: Clone> Array<T> {
    /// The elements as a vector of one's own; copies only where others share them.
    pub fn into_vec(self) -> Vec<T> {
        match self.storage {
            Storage::Owned(shared) => {
                Arc::try_unwrap(shared).unwrap_or_else(|shared| shared.to_vec())
            }
            Storage::Mapped(..) => self.to_vec(),
        }
    }
}

impl<T> Array<T> {
    /// Where the elements lie: equal for arrays that share storage.
    pub fn address(&self) -> usize {
        self.as_ptr() as usize
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
            Storage::Mapped(bytes, view, _) => view(bytes),
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
    fn a_view_needs_matching_length_and_alignment() {
        let floats = Bytes::from_owner(bytemuck::cast_slice::<f32, u8>(&[1.0, 2.0]).to_vec());
        // A fresh heap block is aligned for f32, one byte further on is not.
        assert_eq!(&*Array::<f32>::from_bytes(floats.clone()).unwrap(), &[1.0, 2.0]);
        assert!(Array::<f32>::from_bytes(floats.slice(1..5)).is_none());
        assert!(Array::<f32>::from_bytes(floats.slice(0..6)).is_none());
    }

    #[test]
    fn into_vec_leaves_other_owners_alone() {
        let array = Array::from(vec![1, 2, 3]);
        let other = array.clone();
        assert_eq!(array.into_vec(), vec![1, 2, 3]);
        assert_eq!(&*other, &[1, 2, 3]);
    }
}
