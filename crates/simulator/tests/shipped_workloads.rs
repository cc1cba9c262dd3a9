//! Every workload that comes with Weft can be read, and its placement made.

use std::fs;
use std::path::{Path, PathBuf};

use weft_scheduler::ProfileSet;
use weft_scheduler::fleet::place;
use weft_simulator::{Scenario, Trace, WorkloadFiles};

struct Files(PathBuf);

impl Files {
    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

impl WorkloadFiles for Files {
    fn profiles(&mut self, name: &str) -> Option<ProfileSet> {
        Some(
            ProfileSet::from_toml(&self.read(name))
                .unwrap_or_else(|wrong| panic!("{name}: {wrong}")),
        )
    }

    fn trace(&mut self, name: &str) -> Option<Trace> {
        Some(Trace::from_csv(&self.read(name)).unwrap_or_else(|wrong| panic!("{name}: {wrong}")))
    }
}

#[test]
fn every_workload_can_be_used() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("workloads come with Weft") {
        let path = entry.expect("a folder can be listed").path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a workload can be read");
        let scenario = Scenario::from_toml(&text, &mut Files(folder.clone()));
        let scenario = scenario.unwrap_or_else(|wrong| panic!("{}:\n{wrong}", path.display()));
        let placement = place(&scenario.world.served_device(), scenario.devices);
        assert!(placement.is_ok(), "{}: {placement:?}", path.display());
        count += 1;
    }
    assert!(count >= 3, "only {count} workloads");
}
