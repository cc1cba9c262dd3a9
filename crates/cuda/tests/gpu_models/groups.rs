//! Groups: one launch for requests of several models that differ in their weights.

use weft_cuda::{Choice, CudaGroup, CudaModel, Precision};
use weft_device::{Group, GroupEntry, GroupMember};
use weft_ir::{Graph, Tensor, Value};
use weft_zoo::{Entry, ZooOptions, entries, sample_inputs};

use super::subject::{Gpu, check_close, evaluate, gpu, tolerance};

/// Sizes of partitions that are tried.
const SHARES: [Option<u32>; 3] = [Some(8), Some(32), None];

/// Models of one architecture with weights of their own.
struct Tenants {
    graphs: Vec<Graph>,
    entry: &'static Entry,
}

impl Tenants {
    fn new(entry: &'static Entry, count: u64) -> Self {
        let graph =
            |seed| weft_zoo::build(entry.name, &ZooOptions { seed, ..Default::default() }).unwrap();
        Self { graphs: (1..=count).map(graph).collect(), entry }
    }

    fn inputs(&self, seed: u64) -> Vec<Value> {
        let options = ZooOptions { seed, ..Default::default() };
        let inputs = sample_inputs(self.entry, &options, 1, 8).unwrap();
        inputs.into_iter().map(Value::Tensor).collect()
    }

    fn shapes(&self) -> Vec<Vec<usize>> {
        self.inputs(0).iter().map(|input| input.tensor().unwrap().shape().to_vec()).collect()
    }

    /// A group of all of them; why not where there can be none.
    fn group(
        &self,
        gpu: &Gpu,
        sms: Option<u32>,
        precision: Precision,
        entries: usize,
    ) -> Result<(CudaGroup, Vec<GroupMember>), String> {
        let models: Vec<_> = self
            .graphs
            .iter()
            .enumerate()
            .map(|(number, graph)| {
                let name = format!("tenant {number}");
                gpu.device.load_with_precision(&name, graph, precision)
            })
            .collect();
        let partition = gpu.device.cuda_partition(&gpu.units(sms)).unwrap();
        let (group, first) = partition
            .group_of(&models[0], &self.shapes(), entries)
            .map_err(|error| error.to_string())?;
        let others = models[1..].iter().map(|model| group.join(&**model as &CudaModel).unwrap());
        let members = [first].into_iter().chain(others).collect();
        Ok((group, members))
    }
}

type Answers = Vec<Result<Vec<Value>, String>>;

/// Runs requests of members with inputs, on memory that holds no numbers.
fn run(group: &CudaGroup, requests: &[(GroupMember, Vec<Value>)]) -> Answers {
    group.poison(requests.len()).unwrap();
    let entries: Vec<GroupEntry<'_>> =
        requests.iter().map(|(member, inputs)| GroupEntry { member: *member, inputs }).collect();
    let answers = group.run(&entries).into_iter();
    answers.map(|answer| answer.map_err(|error| error.to_string())).collect()
}

#[test]
fn requests_of_several_models_in_one_launch_have_the_results_of_each_alone() {
    let Some(gpu) = gpu(Choice::Estimated) else { return };
    let mut grouped = Vec::new();
    for entry in entries().filter(|entry| entry.name.starts_with("tiny_")) {
        let tenants = Tenants::new(entry, 3);
        for (sms, precision) in SHARES.into_iter().zip(Precision::ALL.into_iter().cycle()) {
            let (group, members) = match tenants.group(&gpu, sms, precision, 8) {
                Ok(made) => made,
                Err(why) => {
                    eprintln!("{}: {why}", entry.name);
                    break;
                }
            };
            let what = format!("{}, {sms:?} SMs, {precision:?}", entry.name);
            let requests: Vec<(usize, Vec<Value>)> = [0, 1, 2, 1, 0]
                .into_iter()
                .zip(10..)
                .map(|(m, s)| (m, tenants.inputs(s)))
                .collect();
            let of_members: Vec<_> =
                requests.iter().map(|(m, inputs)| (members[*m], inputs.clone())).collect();
            let answers = run(&group, &of_members);
            for ((member, inputs), answer) in requests.iter().zip(&answers) {
                let answer = answer.as_ref().unwrap_or_else(|error| panic!("{what}: {error}"));
                let expected = evaluate(&tenants.graphs[*member], inputs);
                for (expected, actual) in expected.iter().zip(answer) {
                    check_close(expected, actual, tolerance(precision), &what);
                }
            }
            // Neither its place nor its neighbours change a bit of a request's results.
            let turned: Vec<_> = of_members.iter().cycle().skip(2).take(8).cloned().collect();
            for (place, answer) in run(&group, &turned).into_iter().enumerate() {
                assert_eq!(answer.as_ref(), answers[(place + 2) % 5].as_ref(), "{what}");
            }
            // Fewer entries may have other kernels, and have the same results to within rounding.
            for (request, (member, inputs)) in of_members.iter().zip(&requests) {
                let alone = run(&group, std::slice::from_ref(request)).remove(0).unwrap();
                let expected = evaluate(&tenants.graphs[*member], inputs);
                for (expected, actual) in expected.iter().zip(&alone) {
                    check_close(expected, actual, tolerance(precision), &what);
                }
            }
            grouped.push(entry.name);
        }
    }
    grouped.dedup();
    for name in ["tiny_resnet", "tiny_mobilenet_v2", "tiny_bert", "tiny_densenet"] {
        assert!(grouped.contains(&name), "{name} is not among {grouped:?}");
    }
}

#[test]
fn a_request_that_fails_fails_alone() {
    let Some(gpu) = gpu(Choice::Estimated) else { return };
    let tenants = Tenants::new(weft_zoo::entry("tiny_bert").unwrap(), 2);
    let (group, members) = tenants.group(&gpu, Some(8), Precision::F16, 8).unwrap();
    let right = tenants.inputs(5);
    let mut unknown_word = right.clone();
    let shape = right[0].tensor().unwrap().shape().to_vec();
    let count = shape.iter().product();
    unknown_word[0] = Tensor::from_vec(shape, vec![1_000_000i64; count]).unwrap().into();
    let requests = vec![
        (members[0], right.clone()),
        (members[1], unknown_word),
        (GroupMember(9), right.clone()),
        (members[1], Vec::new()),
        (members[1], right.clone()),
    ];
    let answers = run(&group, &requests);
    let failed: Vec<bool> = answers.iter().map(Result::is_err).collect();
    assert_eq!(failed, [false, true, true, true, false], "{answers:?}");
    let message = answers[1].as_ref().unwrap_err();
    assert!(message.contains("tenant 1") && message.contains("not defined for"), "{message}");
    let again = run(&group, &[(members[0], right.clone()), (members[1], right)]);
    assert_eq!(again.len(), 2);
    assert!(again.iter().all(Result::is_ok), "{again:?}");
}

#[test]
fn members_come_and_go() {
    let Some(gpu) = gpu(Choice::Estimated) else { return };
    let tenants = Tenants::new(weft_zoo::entry("tiny_resnet").unwrap(), 3);
    let (group, members) = tenants.group(&gpu, Some(16), Precision::F16, 4).unwrap();
    let inputs = tenants.inputs(1);
    let before = run(&group, &[(members[2], inputs.clone())]);
    group.leave(members[1]).unwrap();
    assert!(group.leave(members[1]).is_err());
    let answers = run(&group, &[(members[1], inputs.clone()), (members[2], inputs.clone())]);
    assert!(answers[0].is_err() && answers[1].is_ok(), "{answers:?}");
    let other = Tenants::new(weft_zoo::entry("tiny_mobilenet_v2").unwrap(), 1);
    let other = gpu.device.load_with_precision("other", &other.graphs[0], Precision::F16);
    assert!(group.join(&*other).is_err());
    let third = gpu.device.load_with_precision("third", &tenants.graphs[2], Precision::F16);
    let third = group.join(&*third).unwrap();
    assert_eq!(third, members[1], "a place that is free is taken");
    assert_eq!(run(&group, &[(third, inputs)]), before);
}

#[test]
fn a_group_takes_memory_for_all_entries_of_a_launch() {
    let Some(gpu) = gpu(Choice::Estimated) else { return };
    let entry = entries().find(|entry| entry.name == "tiny_resnet").unwrap();
    let memory_bytes = |tenants: u64, entries: usize| {
        let tenants = Tenants::new(entry, tenants);
        let (group, _) = tenants.group(&gpu, Some(32), Precision::ALL[0], entries).unwrap();
        group.memory_bytes()
    };
    let (one, many) = (memory_bytes(1, 1), memory_bytes(1, 64));
    assert!(one > 0 && many >= 64 * one, "{one} {many}");
    assert_eq!(memory_bytes(3, 64), many, "however many members");
}
