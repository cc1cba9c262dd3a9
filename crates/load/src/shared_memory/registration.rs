//! Memory that a server was told of, and that it is told to forget.

use std::sync::Arc;
use std::time::Duration;

use super::region::RegionName;
use crate::client::Client;
use crate::error::LoadError;
use crate::target::Target;

/// How long a server may take to forget a region.
const FORGETTING: Duration = Duration::from_secs(2);

/// A region that a server knows by its name until this is dropped.
pub(crate) struct Registration {
    target: Arc<Target>,
    name: String,
}

impl Registration {
    /// Tells a server of a region.
    pub(super) async fn new(
        client: &mut Client,
        region: &RegionName,
        size_bytes: u64,
    ) -> Result<Self, LoadError> {
        // Before the server is asked, so that it forgets the region too where its answer is not waited for.
        let known = Self { target: client.target(), name: region.as_str().to_string() };
        let registered = client.register(&known.name, &region.key(), size_bytes).await;
        registered.map_err(|answer| LoadError::SharedMemory {
            problem: format!(
                "the server cannot open this machine's memory; is it on this machine? It answered {answer}"
            ),
        })?;
        Ok(known)
    }

    /// What the server knows the region by.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let (target, name) = (self.target.clone(), std::mem::take(&mut self.name));
        let forget = async move {
            let told = async {
                // A server that cannot be reached has nothing left to be told.
                let Ok(mut client) = Client::connect(target).await else { return };
                let _ = client.unregister(&name).await;
            };
            let _ = tokio::time::timeout(FORGETTING, told).await;
        };
        // Whoever drops this may be inside a runtime, which cannot be waited in.
        let told = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map(|runtime| runtime.block_on(forget))
        });
        let _ = told.join();
    }
}
