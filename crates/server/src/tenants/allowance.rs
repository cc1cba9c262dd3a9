//! How much one tenant may ask for: its limits, and what it has used of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use weft_repository::Tenant;

use super::bucket::Bucket;
use crate::error::ServeError;

/// What a tenant may ask for.
#[derive(Debug)]
pub(super) struct Allowance {
    rate: Option<Arc<Rate>>,
    concurrency: Option<u32>,
    in_flight: Arc<AtomicU32>,
}

/// A rate, and what was used of it.
#[derive(Debug)]
struct Rate {
    per_s: f64,
    burst: u32,
    bucket: Bucket,
    start: Instant,
}

/// A request that its tenant's limits let through; it is in flight until this is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    in_flight: Option<Arc<AtomicU32>>,
}

impl Allowance {
    /// What the settings say. What was used of limits that stay as they were stays used; what is in flight is in any case.
    pub(super) fn new(tenant: &Tenant, before: Option<&Self>) -> Self {
        let rate = tenant.rate_per_s.map(|per_s| {
            let burst = tenant.burst.unwrap_or_else(|| usual_burst(per_s));
            let before = before.and_then(|before| before.rate.clone());
            before.filter(|rate| rate.per_s == per_s && rate.burst == burst).unwrap_or_else(|| {
                let bucket = Bucket::new(per_s, burst);
                Arc::new(Rate { per_s, burst, bucket, start: Instant::now() })
            })
        });
        let in_flight = before.map(|before| before.in_flight.clone()).unwrap_or_default();
        Self { rate, concurrency: tenant.concurrency, in_flight }
    }

    /// Lets a request through, or says which limit it would pass.
    pub(super) fn admit(&self, now: Instant) -> Result<Permit, ServeError> {
        // Counted before it is looked at: of two that come for the last place one sees the other. What is refused here uses
        // up nothing of the rate.
        let in_flight = self.in_flight.fetch_add(1, Ordering::Relaxed);
        let permit = Permit { in_flight: Some(self.in_flight.clone()) };
        if let Some(limit) = self.concurrency
            && in_flight >= limit
        {
            return Err(ServeError::OverConcurrency { limit });
        }
        if let Some(rate) = &self.rate {
            let taken = rate.bucket.take(now.saturating_duration_since(rate.start));
            let (rate_per_s, burst) = (rate.per_s, rate.burst);
            taken.map_err(|wait| ServeError::OverRate { rate_per_s, burst, wait })?;
        }
        Ok(permit)
    }
}

impl Permit {
    /// For those without limits.
    pub(super) fn unlimited() -> Self {
        Self { in_flight: None }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(in_flight) = &self.in_flight {
            in_flight.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// What comes within a second at the rate may come at once.
fn usual_burst(rate_per_s: f64) -> u32 {
    (rate_per_s.ceil() as u32).max(1)
}
