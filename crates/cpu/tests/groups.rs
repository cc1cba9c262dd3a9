//! Groups of models that differ in their weights alone.

use std::sync::Arc;

use weft_cpu::CpuDevice;
use weft_device::{
    Device, Group, GroupEntry, GroupMember, LoadedModel, NewGroup, Partition, UnitSet,
};
use weft_ir::Value;
use weft_zoo::{ZooOptions, sample_inputs};

fn cores() -> UnitSet {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    (0..available.min(2)).collect()
}

fn inputs(name: &str, seed: u64) -> Vec<Value> {
    let options = ZooOptions { seed, ..ZooOptions::default() };
    let inputs = sample_inputs(weft_zoo::entry(name).unwrap(), &options, 1, 8).unwrap();
    inputs.into_iter().map(Value::Tensor).collect()
}

fn shapes(inputs: &[Value]) -> Vec<Vec<usize>> {
    inputs.iter().map(|input| input.tensor().unwrap().shape().to_vec()).collect()
}

struct Tenants {
    device: CpuDevice,
    partition: Arc<dyn Partition>,
    models: Vec<Arc<dyn LoadedModel>>,
    group: Box<dyn Group>,
    members: Vec<GroupMember>,
}

impl Tenants {
    fn new(name: &str, count: u64, entries: usize) -> Self {
        let device = CpuDevice::new().unwrap();
        let partition = device.partition(&cores()).unwrap();
        let load = |seed| {
            let options = ZooOptions { seed, ..ZooOptions::default() };
            device
                .load(&format!("{name} {seed}"), &weft_zoo::build(name, &options).unwrap())
                .unwrap()
        };
        let models: Vec<Arc<dyn LoadedModel>> = (0..count).map(load).collect();
        let shapes = shapes(&inputs(name, 0));
        let group = partition.prepare_group(&*models[0], &shapes, entries).unwrap();
        let NewGroup { group, first } = group.unwrap();
        let others = models[1..].iter().map(|model| group.join(&**model).unwrap());
        let members = [first].into_iter().chain(others.collect::<Vec<_>>()).collect();
        Self { device, partition, models, group, members }
    }
}

#[test]
fn every_request_gets_what_its_model_makes_of_it_alone() {
    for name in ["tiny_resnet", "tiny_mobilenet_v2", "tiny_bert"] {
        let tenants = Tenants::new(name, 3, 8);
        let given: Vec<Vec<Value>> = (0..8).map(|seed| inputs(name, seed)).collect();
        for count in [1, 2, 3, 7, 8] {
            let tenant = |at: usize| (at * 2 + 1) % 3;
            let entries: Vec<GroupEntry<'_>> = (0..count)
                .map(|at| GroupEntry { member: tenants.members[tenant(at)], inputs: &given[at] })
                .collect();
            let answers = tenants.group.run(&entries);
            assert_eq!(answers.len(), count);
            for (at, answer) in answers.into_iter().enumerate() {
                let model = &*tenants.models[tenant(at)];
                let alone = tenants.partition.prepare(model, &shapes(&given[at])).unwrap();
                assert_eq!(
                    answer.unwrap(),
                    alone.run(&given[at]).unwrap(),
                    "{name}, {at} of {count}"
                );
            }
        }
    }
}

#[test]
fn a_group_takes_an_arena_for_each_core_however_many_members_it_has() {
    let name = "tiny_resnet";
    let alone = |tenants: &Tenants| {
        let shapes = shapes(&inputs(name, 0));
        let alone = tenants.partition.prepare(&*tenants.models[0], &shapes).unwrap();
        alone.report().arena_bytes
    };
    for count in [1, 3] {
        let tenants = Tenants::new(name, count, 4);
        let arena_bytes = alone(&tenants);
        assert!(arena_bytes > 0);
        assert_eq!(tenants.group.memory_bytes(), cores().len() * arena_bytes, "{count} members");
    }
}

#[test]
fn members_come_and_go_and_one_bad_request_harms_no_other() {
    let name = "tiny_resnet";
    let tenants = Tenants::new(name, 2, 4);
    let (good, bad) = (inputs(name, 1), inputs("tiny_bert", 1));
    let [one, other] = tenants.members[..] else { panic!("two members") };
    let entry = |member, inputs| GroupEntry { member, inputs };
    let answers = tenants.group.run(&[entry(one, &good), entry(other, &bad), entry(other, &good)]);
    assert!(answers[0].is_ok() && answers[1].is_err() && answers[2].is_ok());
    assert_ne!(answers[0].as_ref().unwrap(), answers[2].as_ref().unwrap());
    tenants.group.leave(other).unwrap();
    assert!(tenants.group.leave(other).is_err());
    let answers = tenants.group.run(&[entry(other, &good), entry(one, &good)]);
    assert!(answers[0].is_err() && answers[1].is_ok());
    let again = tenants.group.join(&*tenants.models[1]).unwrap();
    assert!(tenants.group.run(&[entry(again, &good)])[0].is_ok());
    let stranger = weft_zoo::build("tiny_vgg", &ZooOptions::default()).unwrap();
    let stranger = tenants.device.load("stranger", &stranger).unwrap();
    assert!(tenants.group.join(&*stranger).is_err());
    let many = [entry(one, &good); 5];
    assert!(tenants.group.run(&many).iter().all(Result::is_err));
}
