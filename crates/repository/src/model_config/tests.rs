use std::time::Duration;

use super::*;

fn read(text: &str) -> ModelConfig {
    let read = ModelConfig::read(text);
    assert_eq!(read.problems, Vec::new(), "{text}");
    read.config.unwrap()
}

fn problems(text: &str) -> Vec<String> {
    let read = ModelConfig::read(text);
    assert_eq!(read.config.is_none(), !read.problems.is_empty(), "{text}");
    read.problems.into_iter().map(|(line, what)| format!("{line}: {what}")).collect()
}

#[test]
fn a_configuration_as_people_write_them_is_understood() {
    let config = read(
        r#"
        # A classifier, served in batches.
        name: "classifier"
        platform: "onnxruntime_onnx"
        max_batch_size: 32
        input [
          { name: "pixels", data_type: TYPE_FP32, dims: [ 3, -1, 224 ] },
          { name: "labels" data_type: TYPE_STRING dims: 1 }
        ]
        output < name: 'scores' data_type: 11 dims: 1000 dims: 2 >
        version_policy: { latest { num_versions: 2 } }
        dynamic_batching {
          preferred_batch_size: [ 8, 16 ]
          max_queue_delay_microseconds: 500
          priority_levels: 3
          default_priority_level: 2
          default_queue_policy {
            timeout_action: DELAY
            default_timeout_microseconds: 20000
            allow_timeout_override: true
            max_queue_size: 64
          }
        }
        "#,
    );
    assert_eq!(config.name.as_deref(), Some("classifier"));
    assert_eq!(config.max_batch_size, Some(32));
    let tensor = |name: &str, data_type, dims: &[Option<u64>]| ConfigTensor {
        name: name.into(),
        data_type: Some(data_type),
        dims: dims.to_vec(),
    };
    assert_eq!(
        config.inputs,
        [
            tensor("pixels", ConfigDataType::Fp32, &[Some(3), None, Some(224)]),
            tensor("labels", ConfigDataType::Bytes, &[Some(1)]),
        ]
    );
    assert_eq!(config.outputs, [tensor("scores", ConfigDataType::Fp32, &[Some(1000), Some(2)])]);
    assert_eq!(config.version_policy, VersionPolicy::Latest(2));
    let batching = config.dynamic_batching.unwrap();
    assert_eq!(batching.preferred_batch_sizes, [8, 16]);
    assert_eq!(batching.max_queue_delay, Duration::from_micros(500));
    assert_eq!((batching.priority_levels, batching.default_priority_level), (3, 2));
    assert_eq!(
        batching.queue,
        QueuePolicy {
            timeout_action: TimeoutAction::Delay,
            default_timeout: Some(Duration::from_millis(20)),
            allow_timeout_override: true,
            max_queue_size: Some(64),
        }
    );
}

#[test]
fn what_is_not_said_is_left_open() {
    let config = read("");
    assert_eq!(config, ModelConfig::default());
    assert_eq!(config.version_policy, VersionPolicy::Latest(1));
    assert_eq!(config.model_file(), "model.onnx");
    assert_eq!(read("dynamic_batching { }").dynamic_batching, Some(DynamicBatching::default()));
    assert_eq!(read("max_batch_size: 0").max_batch_size, Some(0));
    assert_eq!(read("name: ''").name, None);
    assert_eq!(read("version_policy { all {} }").version_policy, VersionPolicy::All);
    assert_eq!(read("version_policy {}").version_policy, VersionPolicy::Latest(1));
    let specific = read("version_policy { specific { versions: [3, 1] } }").version_policy;
    assert_eq!(specific, VersionPolicy::Specific([1, 3].into()));
}

#[test]
fn fields_that_change_nothing_are_noted_and_unknown_ones_are_problems() {
    let text = "instance_group [{ kind: KIND_GPU\n anything: 1 }]\n\
                input { name: 'a' reshape { shape: [] } }\n\
                parameters { key: 'k' value { string_value: 'v' } }\n\
                dynamic_batching { preserve_ordering: true preferred_batch_size: 4 }\n\
                parameters { key: 'l' value { string_value: 'v' } }\n\
                model_transaction_policy { decoupled: false }";
    let read = ModelConfig::read(text);
    assert!(read.config.is_some(), "{:?}", read.problems);
    let notes: Vec<String> =
        read.notes.iter().map(|(line, what)| format!("{line}: {what}")).collect();
    assert_eq!(
        notes,
        [
            "1: ignored: instance_group",
            "3: ignored: input.reshape",
            "4: ignored: parameters",
            "5: ignored: dynamic_batching.preferred_batch_size",
            "5: ignored: dynamic_batching.preserve_ordering",
        ]
    );
    assert_eq!(
        problems("nmae: 'a'\ninput { name: 'a' dim: 1 }\ndynamic_batching { delay: 1 }"),
        [
            "1: unknown field 'nmae'",
            "2: unknown field 'input.dim'",
            "3: unknown field 'dynamic_batching.delay'",
        ]
    );
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    for (text, line, says) in [
        ("platform: 'tensorrt_plan'", 1, "platform 'tensorrt_plan' is not supported"),
        ("\nbackend: 'python'", 2, "backend 'python' is not supported"),
        ("max_batch_size: -1", 1, "at least 0, not -1"),
        ("max_batch_size: 4294967296", 1, "not 4294967296"),
        ("max_batch_size: 1.5", 1, "not a number that is not whole"),
        ("max_batch_size: '8'", 1, "not a text in quotes"),
        ("name: 1", 1, "a text in quotes, not 1"),
        ("name: 'a'\nname: 'b'", 2, "'name' is given twice"),
        ("input { data_type: TYPE_FP32 }", 1, "this input has no name"),
        ("input { name: 'a' }\ninput { name: 'a' }", 2, "input 'a' is listed twice"),
        ("input { name: 'a' data_type: FP32 }", 1, "not 'FP32'"),
        ("input { name: 'a' data_type: 15 }", 1, "not 15"),
        ("input { name: 'a' data_type: TYPE_INVALID }", 1, "TYPE_INVALID"),
        ("input { name: 'a' dims: [ 1,\n 0 ] }", 2, "a dimension"),
        ("input { name: 'a' dims: -2 }", 1, "at least -1, not -2"),
        ("input: 3", 1, "'input' must be fields in brackets, not 3"),
        ("version_policy { latest { num_versions: 0 } }", 1, "at least 1, not 0"),
        ("version_policy { all {} latest {} }", 1, "not several"),
        ("version_policy { specific {} }", 1, "names no versions"),
        ("version_policy {}\nversion_policy {}", 2, "'version_policy' is given twice"),
        (
            "max_batch_size: 4 dynamic_batching { preferred_batch_size: 8 }",
            1,
            "above max_batch_size, 4",
        ),
        ("dynamic_batching { priority_levels: 2 }", 1, "must be from 1 to 2"),
        ("dynamic_batching { priority_levels: 2\ndefault_priority_level: 3 }", 2, "from 1 to 2"),
        ("dynamic_batching { default_queue_policy { timeout_action: LATER } }", 1, "REJECT, DELAY"),
        (
            "dynamic_batching { default_queue_policy { allow_timeout_override: yes } }",
            1,
            "true or false",
        ),
        ("sequence_batching {}", 1, "'sequence_batching' is not supported"),
        ("ensemble_scheduling {}", 1, "'ensemble_scheduling' is not supported"),
        ("model_transaction_policy { decoupled: true }", 1, "one answer"),
        ("default_model_filename: '../secret'", 1, "in the version's folder"),
        ("default_model_filename: '.hidden'", 1, "in the version's folder"),
        ("\nname: ", 2, "a value is expected"),
    ] {
        let found = problems(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].starts_with(&format!("{line}: ")), "{text}: {found:?}");
        assert!(found[0].contains(says), "{text}: {found:?}");
    }
    let all = problems("backend: 'python'\nmax_batch_size: -1\nfoo: 1\ninput { dims: 0 }");
    assert_eq!(all.len(), 5, "{all:?}");
}

#[test]
fn every_field_that_is_not_used_is_documented() {
    let page = include_str!("../../../../docs/repository.md");
    for name in UNUSED.into_iter().chain(REFUSED.map(|(name, _)| name)) {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}
