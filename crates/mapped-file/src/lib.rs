//! Files as bytes without a copy: model files are large, and their tensors can be used where they lie.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use memmap2::{Mmap, UncheckedAdvice};

/// Files up to this size are read: a mapping costs at least a page and pins the file's content to the disk's.
const MAX_READ_BYTES: u64 = 1 << 20;

/// No smaller than the pages of any machine that Weft runs on.
const PAGE_BYTES: usize = 1 << 16;

/// The content of a file, mapped into memory where it is large.
///
/// A mapped file must not be changed in place while the bytes are in use; replacing it by another of the same name,
/// as package managers and Weft itself do, leaves the mapping as it was.
pub fn open(path: &Path) -> io::Result<Bytes> {
    // Asked of the path, because to open a pipe is to wait for its writer.
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a file"));
    }
    let mut file = File::open(path)?;
    if metadata.len() <= MAX_READ_BYTES {
        let mut content = Vec::with_capacity(metadata.len() as usize);
        // The file may grow meanwhile; what it grows by is not wanted.
        file.by_ref().take(MAX_READ_BYTES).read_to_end(&mut content)?;
        return Ok(Bytes::from(content));
    }
    // SAFETY: the mapping is private and read-only, and `Bytes` keeps it alive for as long as any view of it. What is
    // left is that nobody may change the file in place meanwhile, which the contract above asks of the caller's system;
    // every byte pattern is valid for `u8`, and all that is made of the bytes is checked against the mapped length.
    let mapping = Arc::new(unsafe { Mmap::map(&file)? });
    let mut mappings = MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner);
    mappings.retain(|mapping| mapping.strong_count() > 0);
    mappings.push(Arc::downgrade(&mapping));
    Ok(Bytes::from_owner(Mapping(mapping)))
}

/// Every mapping that is still in use, so that parts of them can be found by address.
static MAPPINGS: Mutex<Vec<Weak<Mmap>>> = Mutex::new(Vec::new());

/// What keeps a mapping alive inside [`Bytes`].
struct Mapping(Arc<Mmap>);

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Lets go of the memory behind bytes of a mapped file that are not needed for now; they are read from the file again
/// when they are used again. Bytes that are no part of a mapping stay as they are.
pub fn let_go(bytes: &[u8]) {
    let mappings = MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let start = bytes.as_ptr() as usize;
    for mapping in mappings.iter().filter_map(Weak::upgrade) {
        let first = mapping.as_ptr() as usize;
        if start < first || start + bytes.len() > first + mapping.len() {
            continue;
        }
        // Whole pages alone: a page at either end may hold a neighbour that is in use.
        let offset = (start - first).next_multiple_of(PAGE_BYTES);
        let end = (start - first + bytes.len()) / PAGE_BYTES * PAGE_BYTES;
        if offset < end {
            // SAFETY: the range lies inside the mapping, which is private, read-only and backed by the file, so that
            // its pages come back with the same content; nothing can have been written to them.
            let _ = unsafe {
                mapping.unchecked_advise_range(UncheckedAdvice::DontNeed, offset, end - offset)
            };
        }
        return;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_others_is_left_alone() {
        let own = vec![7u8; 4 * PAGE_BYTES];
        let_go(&own);
        assert!(own.iter().all(|&byte| byte == 7));
    }

    #[test]
    fn small_files_are_read_and_large_ones_mapped() {
        let folder = std::env::temp_dir().join(format!("weft-mapped-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for size in [0, 10, MAX_READ_BYTES as usize + 1] {
            let content: Vec<u8> = (0..size).map(|index| index as u8).collect();
            let path = folder.join(size.to_string());
            std::fs::write(&path, &content).unwrap();
            let bytes = open(&path).unwrap();
            // The content outlives the name.
            std::fs::remove_file(&path).unwrap();
            assert!(bytes == content);
            let_go(&bytes);
            let_go(&bytes[bytes.len() / 3..]);
            assert!(bytes == content, "what was let go comes back");
        }
        assert!(open(&folder).is_err());
        std::fs::remove_dir(&folder).unwrap();
    }
}
