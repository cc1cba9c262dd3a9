//! Files as bytes without a copy: model files are large, and their tensors can be used where they lie.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use bytes::Bytes;
use memmap2::Mmap;

/// Files up to this size are read: a mapping costs at least a page and pins the file's content to the disk's.
const MAX_READ_BYTES: u64 = 1 << 20;

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
    let mapping = unsafe { Mmap::map(&file)? };
    Ok(Bytes::from_owner(mapping))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        }
        assert!(open(&folder).is_err());
        std::fs::remove_dir(&folder).unwrap();
    }
}
