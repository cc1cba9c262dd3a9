//! What was picked for one platform, as those ask who prepare models.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use weft_device::{KernelChoices, OperatorKey, Platform};
use xxhash_rust::xxh3::xxh3_64;

use crate::database::{Database, DatabaseError};

/// The choices for one platform, as they were when they were loaded.
///
/// For a partition of a size that was not tuned for, the choice is that of the nearest size by ratio, the smaller of two
/// that are as near. A candidate that is known to be wrong, to fail or to crash at the size asked for is never named.
#[derive(Debug, Default)]
pub struct Choices {
    operators: HashMap<OperatorKey, Operator>,
    count: usize,
    version: u64,
}

#[derive(Debug, Default)]
struct Operator {
    /// What was picked, by partition size, in ascending order.
    picked: Vec<(usize, Arc<str>)>,
    /// What must not be named, at which size.
    banned: HashSet<(usize, Arc<str>)>,
}

impl Choices {
    /// Reads the choices for a platform; none where the database knows nothing of it.
    pub fn load(database: &Database, platform: &Platform) -> Result<Self, DatabaseError> {
        let loaded = database.usable_choices(platform)?;
        let mut choices = Self { count: loaded.picked.len(), ..Self::default() };
        for (operator, size, candidate) in loaded.picked {
            let text = format!("{} {} {size} {candidate}", operator.operator, operator.precision);
            // A sum, so that the order in which they are read makes no difference.
            choices.version = choices.version.wrapping_add(xxh3_64(text.as_bytes()));
            choices.operators.entry(operator).or_default().picked.push((size, candidate.into()));
        }
        for (operator, size, candidate) in loaded.banned {
            if let Some(operator) = choices.operators.get_mut(&operator) {
                operator.banned.insert((size, candidate.into()));
            }
        }
        for operator in choices.operators.values_mut() {
            operator.picked.sort_unstable_by_key(|&(size, _)| size);
        }
        Ok(choices)
    }

    /// How many tasks something was picked for.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Another number for other choices.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Nothing was picked.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl KernelChoices for Choices {
    fn choice(&self, operator: &OperatorKey, partition_size: usize) -> Option<Arc<str>> {
        let operator = self.operators.get(operator)?;
        let usable = operator.picked.iter().filter(|(_, candidate)| {
            operator.banned.is_empty()
                || !operator.banned.contains(&(partition_size, candidate.clone()))
        });
        // The first of several that are as near is taken, and smaller ones come first.
        let nearest = usable.min_by(|(one, _), (other, _)| {
            distance(*one, partition_size).total_cmp(&distance(*other, partition_size))
        });
        nearest.map(|(_, candidate)| candidate.clone())
    }
}

/// How far apart two sizes are, by ratio.
fn distance(one: usize, other: usize) -> f64 {
    // Exact where sizes are small, so that two that are as near compare as equal: logarithms would round.
    let (small, large) = (one.min(other), one.max(other));
    large as f64 / small as f64
}
