//! What measurements on this machine hold for.

use std::path::Path;

use weft_device::Platform;

use super::sources::version;
use crate::Isa;

/// What is taken for the size of a core's own caches where the operating system does not tell.
const USUAL_CACHE_BYTES: usize = 1 << 20;

/// The processor as it is described, with its instruction set and its caches.
pub(super) fn platform(processor: &str, isa: Isa) -> Platform {
    let caches: Vec<String> = caches()
        .iter()
        .map(|cache| format!("L{} {} KiB", cache.level, cache.size_bytes / 1024))
        .collect();
    Platform {
        chip: format!("{processor}, {}, {}", isa.name(), caches.join(", ")),
        // Nothing stands between the process and its cores that would change how long a kernel takes.
        driver: "cpu".into(),
        kernels: version().into(),
    }
}

/// How much the caches hold that a core shares with no other.
pub(super) fn private_cache_bytes() -> usize {
    let second = caches().into_iter().find(|cache| cache.level == 2);
    second.map_or(USUAL_CACHE_BYTES, |cache| cache.size_bytes)
}

/// A cache for data.
struct Cache {
    level: usize,
    size_bytes: usize,
}

/// The caches of the first core, as the operating system describes them.
fn caches() -> Vec<Cache> {
    let folder = Path::new("/sys/devices/system/cpu/cpu0/cache");
    let mut caches: Vec<Cache> = (0..8).filter_map(|index| cache(folder, index)).collect();
    caches.sort_by_key(|cache| cache.level);
    caches
}

fn cache(folder: &Path, index: usize) -> Option<Cache> {
    let read = |name: &str| {
        let text = std::fs::read_to_string(folder.join(format!("index{index}")).join(name)).ok()?;
        Some(text.trim().to_string())
    };
    if read("type")? == "Instruction" {
        return None;
    }
    let kibibytes: usize = read("size")?.strip_suffix('K')?.parse().ok()?;
    Some(Cache { level: read("level")?.parse().ok()?, size_bytes: kibibytes * 1024 })
}
