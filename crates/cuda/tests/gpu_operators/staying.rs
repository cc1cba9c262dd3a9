//! Blocks that stay and compute several requests in one launch: each has the bits that it has alone.

use weft_cuda::{Choice, CudaDevice, CudaGroup, CudaModel, Precision};
use weft_device::{Executable, Group, GroupEntry, GroupMember, StepReport, UnitSet};
use weft_ir::{Value, reference};

use super::cases::tenants::{FEW_PIXELS, Layer, MANY_PIXELS};
use super::{compare, device};

/// Every tile, with the layers that it is for.
const TILES: [(&str, &[Layer]); 8] = [
    ("streamed 128x64 2 teams", &MANY_PIXELS),
    ("streamed 128x64 3 teams", &MANY_PIXELS),
    ("streamed 64x128 3 teams", &MANY_PIXELS),
    ("streamed 128x128 2 teams", &MANY_PIXELS),
    ("streamed 64x256 2 teams", &MANY_PIXELS),
    ("streamed 64x64 one team", &FEW_PIXELS),
    ("streamed 64x128 one team", &FEW_PIXELS),
    ("streamed 64x256 one team", &FEW_PIXELS),
];

/// Requests of one launch: odd numbers, which leave some of its entries empty, and as many as it has.
const ON_FEW_SMS: [usize; 2] = [5, 3];
const ON_ALL_SMS: [usize; 2] = [11, 16];
const MOST: usize = 16;

const TENANTS: u64 = 3;

/// A request: of which tenant, and what it is given.
struct Request {
    tenant: usize,
    inputs: Vec<Value>,
}

#[test]
fn blocks_that_stay_compute_requests_of_several_tenants_as_each_alone() {
    for (tile, layers) in TILES {
        let Some(device) = device(Choice::Named(tile)) else { return };
        for (layer, precision) in layers.iter().zip([Precision::F16, Precision::Bf16]) {
            check(&device, tile, layer, precision);
        }
    }
}

/// Blocks that stay are among the kernels that are run, and chosen from.
#[test]
fn groups_whose_kernels_are_measured_agree_with_the_reference() {
    let Some(device) = device(Choice::Measured) else { return };
    let layer = Layer { image: [64, 5, 5], filters: 72, ..FEW_PIXELS[0] };
    let case = layer.of_tenant(7);
    let model = device.load_with_precision("tenant", &case.graph, Precision::F16);
    let partition = device.cuda_partition(&UnitSet::first(1)).unwrap();
    let shapes: Vec<Vec<usize>> = case.inputs.iter().map(|input| input.shape().to_vec()).collect();
    let (group, member) = partition.group_of(&model, &shapes, 8).unwrap();
    let inputs: Vec<Value> = case.inputs.iter().cloned().map(Value::Tensor).collect();
    let requests: Vec<Request> =
        (0..7).map(|_| Request { tenant: 0, inputs: inputs.clone() }).collect();
    let of_graph: Vec<Option<Value>> = inputs.iter().cloned().map(Some).collect();
    let expected = reference::evaluate(&case.graph, &of_graph).unwrap();
    for answer in run(&group, &[member], &requests) {
        let (expected, actual) = (expected[0].tensor().unwrap(), answer[0].tensor().unwrap());
        compare(expected, actual, Precision::F16).unwrap();
    }
}

fn check(device: &CudaDevice, tile: &str, layer: &Layer, precision: Precision) {
    let what = format!("{} by {tile} at {precision}", layer.name);
    let models: Vec<_> = (0..TENANTS)
        .map(|tenant| {
            let case = layer.of_tenant(tenant);
            device.load_with_precision(&format!("tenant {tenant}"), &case.graph, precision)
        })
        .collect();
    let shapes: Vec<Vec<usize>> =
        layer.request(0).iter().map(|input| input.shape().to_vec()).collect();
    let request = |number: usize| Request {
        tenant: 2 * number % TENANTS as usize,
        inputs: layer.request(number as u64).into_iter().map(Value::Tensor).collect(),
    };
    let requests: Vec<Request> = (0..MOST).map(request).collect();
    // A tile of one request has the same bits on however many SMs.
    let few = UnitSet::first(1);
    let partition = device.cuda_partition(&few).unwrap();
    let alone: Vec<_> = models
        .iter()
        .map(|model| {
            let executable = partition.prepare_model(model, &shapes).unwrap();
            assert!(has(&executable.report().steps, tile), "{what}, alone");
            executable
        })
        .collect();
    let expected: Vec<Vec<Value>> = requests
        .iter()
        .map(|request| {
            let executable = &alone[request.tenant];
            executable.poison().unwrap();
            executable.run(&request.inputs).unwrap()
        })
        .collect();
    drop(alone);
    assert_ne!(expected[0], expected[3], "{what}: one tenant, other inputs");
    for (units, counts) in [(few, &ON_FEW_SMS[..]), (device.layout().all(), &ON_ALL_SMS)] {
        let partition = device.cuda_partition(&units).unwrap();
        let most = counts.iter().max().unwrap();
        let (group, first) = partition.group_of(&models[0], &shapes, *most).unwrap();
        let others = models[1..].iter().map(|model| group.join(&**model as &CudaModel).unwrap());
        let members: Vec<GroupMember> = [first].into_iter().chain(others).collect();
        for &count in counts {
            let steps = &group.report(count).unwrap().steps;
            assert!(has(steps, tile), "{what}, {count} requests: {steps:?}");
            let answers = run(&group, &members, &requests[..count]);
            for (place, (answer, expected)) in answers.iter().zip(&expected).enumerate() {
                assert!(answer == expected, "{what}: request {place} of {count} on {units}");
            }
        }
    }
}

fn has(steps: &[StepReport], tile: &str) -> bool {
    steps.iter().any(|step| step.kernel.starts_with(tile))
}

/// Runs requests together, on memory that holds no numbers.
fn run(group: &CudaGroup, members: &[GroupMember], requests: &[Request]) -> Vec<Vec<Value>> {
    group.poison(requests.len()).unwrap();
    let entries: Vec<GroupEntry<'_>> = requests
        .iter()
        .map(|request| GroupEntry { member: members[request.tenant], inputs: &request.inputs })
        .collect();
    group.run(&entries).into_iter().map(Result::unwrap).collect()
}
