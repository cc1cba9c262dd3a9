use std::time::Duration;

use proptest::prelude::*;
use weft_scheduler::Span;

use super::*;
use crate::generate_key;
use crate::model_config::{DynamicBatching, QueuePolicy};

fn read_from(text: &str) -> Settings {
    match Settings::from_toml(text, Path::new("/models")) {
        Ok(read) => read.settings,
        Err(problems) => panic!("{text}\n{problems}"),
    }
}

fn problems(text: &str) -> Vec<String> {
    match Settings::from_toml(text, Path::new("/models")) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.as_slice().iter().map(ToString::to_string).collect(),
    }
}

fn hash() -> String {
    generate_key().unwrap().hash.to_string()
}

#[test]
fn without_a_word_the_server_listens_to_this_machine_alone() {
    let settings = read_from("");
    assert_eq!(settings, Settings::default());
    let server = &settings.server;
    for address in [server.listen, server.grpc_listen, server.admin_listen] {
        assert!(address.unwrap().ip().is_loopback());
    }
    assert!(settings.allows_anonymous());
    assert_eq!(settings.of_model("any", None).slo, None);
    assert!(settings.may_use(None, "any"));
}

#[test]
fn every_table_is_read() {
    let [red, admin] = [hash(), hash()];
    let settings = read_from(&format!(
        r#"
        [server]
        listen = "0.0.0.0:80"
        grpc_listen = "off"
        admin_listen = "[::]:81"
        max_body_mib = 0.5
        read_timeout_s = 2
        tls_certificate = "chain.pem"
        tls_key = "/etc/key.pem"
        log_format = "json"
        otlp_endpoint = "http://collector:4317"
        [device]
        kind = "cuda:1"
        units = 8
        memory_budget_mib = 4096
        precision = "bf16"
        policy = "clockwork"
        profiles = "profiles/h200.toml"
        [admin]
        key_hashes = ["{admin}"]
        [tenants.red]
        key_hashes = ["{red}"]
        rate_per_s = 10.5
        burst = 20
        concurrency = 4
        "#
    ));
    let server = &settings.server;
    assert_eq!(server.listen, Some(([0, 0, 0, 0], 80).into()));
    assert_eq!(server.grpc_listen, None);
    assert_eq!(server.max_body_bytes, 512 << 10);
    assert_eq!(server.read_timeout, Duration::from_secs(2));
    let tls = server.tls.as_ref().unwrap();
    assert_eq!(tls.certificate, Path::new("/models/chain.pem"));
    assert_eq!(tls.key, Path::new("/etc/key.pem"));
    assert_eq!(server.log_format, LogFormat::Json);
    let device = &settings.device;
    assert_eq!((device.kind, device.units), (DeviceKind::Cuda(1), Some(8)));
    assert_eq!(device.memory_budget_bytes, Some(4 << 30));
    assert_eq!(device.precision, Some(Precision::Bf16));
    assert_eq!(device.policy, "clockwork");
    assert_eq!(device.profiles.as_deref(), Some(Path::new("/models/profiles/h200.toml")));
    let tenant = &settings.tenants["red"];
    assert_eq!((tenant.weight, tenant.rate_per_s, tenant.burst), (1.0, Some(10.5), Some(20)));
    assert!(!settings.allows_anonymous());
}

#[test]
fn the_nearest_word_on_a_model_counts() {
    let settings = read_from(
        "[defaults]\nslo_ms = 50\npercentile = 0.95\nmax_batch = 4\nmax_queue = 7\n\
         dimensions = { sequence = 128, width = 3 }\n\
         [models.a]\nslo_ms = 2.5\nmax_batch = 16\ndimensions = { sequence = 64 }\n\
         [models.b]\nbest_effort = true\ntimeout_ms = 9\n",
    );
    let queue = QueuePolicy {
        max_queue_size: Some(99),
        default_timeout: Some(Duration::from_millis(1)),
        ..Default::default()
    };
    let config = ModelConfig {
        max_batch_size: Some(8),
        dynamic_batching: Some(DynamicBatching { queue, ..Default::default() }),
        ..Default::default()
    };
    let a = settings.of_model("a", Some(&config));
    assert_eq!(
        a.slo.unwrap(),
        weft_scheduler::plan::Slo { percentile: 0.95, latency: Span::from_us(2500.0) }
    );
    assert_eq!(a.max_batch, Some(16), "its own table, over config.pbtxt");
    assert_eq!(a.max_queue, 99, "config.pbtxt, over the defaults");
    assert_eq!(a.timeout, Some(Duration::from_millis(1)));
    assert_eq!(a.dimensions, BTreeMap::from([("sequence".into(), 64), ("width".into(), 3)]));
    let b = settings.of_model("b", Some(&config));
    assert_eq!((b.slo, b.max_batch), (None, Some(8)));
    assert_eq!(b.timeout, Some(Duration::from_millis(9)));
    let c = settings.of_model("c", None);
    assert_eq!((c.slo.unwrap().latency, c.max_batch), (Span::from_us(50_000.0), Some(4)));
    let unbatched = ModelConfig { max_batch_size: Some(0), ..Default::default() };
    assert_eq!(settings.of_model("c", Some(&unbatched)).max_batch, Some(1));
}

#[test]
fn models_are_seen_by_those_who_may_use_them() {
    let settings = read_from(&format!(
        "[tenants.red]\nkey_hashes = ['{}']\n[tenants.blue]\nkey_hashes = ['{}']\nmodels = ['lent']\n\
         [models.own]\ntenant = 'red'\n[models.lent]\ntenant = 'red'\n\
         [models.open]\ntenant = 'red'\nshared = true\n[models.locked]\nshared = false",
        hash(),
        hash(),
    ));
    let who = |model: &str| {
        let candidates = [Some("red"), Some("blue"), Some("stranger"), None];
        let answers = candidates.map(|tenant| settings.may_use(tenant, model));
        let agreed = settings.of_model(model, None);
        assert_eq!(answers[3], agreed.is_shared, "{model}");
        assert_eq!(answers[0], agreed.is_shared || agreed.tenant.as_deref() == Some("red"));
        answers
    };
    assert_eq!(who("own"), [true, false, false, false]);
    assert_eq!(who("lent"), [true, true, false, false]);
    assert_eq!(who("open"), [true; 4]);
    assert_eq!(who("free"), [true; 4]);
    assert_eq!(who("locked"), [false; 4]);
}

#[test]
fn keys_find_their_tenant() {
    let [red, blue, admin] = [(); 3].map(|()| generate_key().unwrap());
    let settings = read_from(&format!(
        "[admin]\nkey_hashes = ['{}']\n[tenants.red]\nkey_hashes = ['{}']\n[tenants.blue]\nkey_hashes = ['{}']",
        admin.hash, red.hash, blue.hash,
    ));
    let tenants = settings.tenant_keys();
    assert_eq!(tenants.owner(&red.key).map(String::as_str), Some("red"));
    assert_eq!(tenants.owner(&blue.key).map(String::as_str), Some("blue"));
    assert_eq!(tenants.owner(&admin.key), None);
    assert!(settings.admin_keys().owner(&admin.key).is_some());
    assert!(settings.admin_keys().owner(&red.key).is_none());
}

#[test]
fn strangers_are_not_let_in_by_accident() {
    let key = format!("key_hashes = ['{}']", hash());
    for (text, exposures) in [
        ("[server]\nlisten = '0.0.0.0:8000'".to_string(), 1),
        ("[server]\nlisten = '0.0.0.0:8000'\ngrpc_listen = '[::]:8001'".to_string(), 2),
        ("[server]\nlisten = '0.0.0.0:8000'\nanonymous = true".to_string(), 0),
        (format!("[server]\nlisten = '0.0.0.0:8000'\n[tenants.red]\n{key}"), 0),
        ("[server]\nadmin_listen = '0.0.0.0:8002'".to_string(), 1),
        (format!("[server]\nadmin_listen = '0.0.0.0:8002'\n[admin]\n{key}"), 0),
        ("[server]\nlisten = '127.0.0.2:8000'\ngrpc_listen = '[::1]:1'".to_string(), 0),
    ] {
        let found = problems(&text);
        assert_eq!(found.len(), exposures, "{text}: {found:?}");
        assert!(found.iter().all(|problem| problem.starts_with("line 1: ")), "{found:?}");
    }
}

#[test]
fn what_is_wrong_is_said_by_line() {
    let key = format!("key_hashes = ['{}']", hash());
    let twice = format!("[tenants.a]\n{key}\n[tenants.b]\n{key}");
    for (text, line, says) in [
        ("[srever]", 1, "unknown key 'srever'"),
        ("[server]\nlisten = 8000", 2, "must be a text"),
        ("[server]\nlisten = ':8000'", 2, "such as 127.0.0.1:8000, or off, not ':8000'"),
        ("[server]\nlisten = 'off'\ngrpc_listen = 'off'", 1, "cannot both be off"),
        ("[server]\nadmin_listen = '127.0.0.1:8000'", 1, "an address of its own"),
        ("[server]\ntls_key = 'k'", 1, "need each other"),
        ("[server]\nmax_body_mib = 0", 2, "above 0"),
        ("[server]\nmax_body_mib = 1e300", 2, "is at most"),
        ("[server]\nread_timeout_s = 1e300", 2, "is at most"),
        ("[server]\nlog_format = 'xml'", 2, "one of text, json"),
        ("[server]\notlp_endpoint = 'collector'", 2, "http://"),
        ("[server]\ngroup_entries = 65", 2, "from 1 to 64"),
        ("[device]\nkind = 'tpu'", 2, "one of auto, cpu, cuda"),
        ("[device]\nkind = 'cuda:x'", 2, "cuda:NUMBER"),
        ("[device]\npolicy = 'magic'", 2, "one of time-sharing"),
        ("[device]\nprecision = 'f8'", 2, "one of f16, bf16, tf32, f32"),
        ("[defaults]\npercentile = 99", 2, "share below 1"),
        ("[models.a]\nslo_ms = 1\nbest_effort = true", 1, "contradict"),
        ("[models.a]\nkeep_loaded = true\nidle_timeout_s = 1", 1, "contradict"),
        ("[models.a]\npriority = 256", 2, "up to 255"),
        ("[models.a]\ntenant = 'ghost'", 2, "there is no [tenants.ghost]"),
        ("[models.a]\ndimensions = { sequence = 0 }", 2, "at least 1"),
        ("[models.a]\nshared = 1", 2, "true or false"),
        ("[models.a]\nslo = 1", 2, "unknown key 'slo'; known are slo_ms"),
        ("[tenants.a]", 1, "needs 'key_hashes'"),
        ("[tenants.a]\nkey_hashes = ['secret']", 2, "sha256:ID:DIGEST"),
        ("[tenants.a]\nkey_hashes = []", 2, "not empty"),
        (&twice, 3, "a key has one owner"),
        (&format!("[tenants.a]\n{key}\nburst = 3"), 1, "'burst' of no limit"),
        (&format!("[tenants.' a']\n{key}"), 1, "begin or end with a space"),
        ("[server", 1, ""),
    ] {
        let found = problems(text);
        assert!(!found.is_empty(), "{text}");
        let is_said = |problem: &String| {
            problem.starts_with(&format!("line {line}: ")) && problem.contains(says)
        };
        assert!(found.iter().any(is_said), "{text}: {found:?}");
        assert!(found.len() <= 2, "{text}: {found:?}");
    }
}

/// The page that describes the file.
const PAGE: &str = include_str!("../../../../docs/repository.md");

#[test]
fn the_example_in_the_documentation_is_read_without_a_problem() {
    let example = PAGE.split("```toml\n").nth(1).and_then(|rest| rest.split("\n```").next());
    let settings = read_from(example.expect("the page holds an example"));
    assert_ne!(settings, Settings::default());
    for model in ["mobilenet_v2", "minilm_l6"] {
        assert!(settings.models.contains_key(model), "{model}");
    }
    for tenant in ["search", "research"] {
        assert!(settings.tenants.contains_key(tenant), "{tenant}");
    }
}

#[test]
fn every_key_is_documented() {
    for table in ["server", "device", "admin", "defaults", "tenants.x"] {
        let found = problems(&format!("[{table}]\nzzz = 1"));
        let known = found.iter().find_map(|problem| problem.split_once("known are "));
        let (_, known) = known.expect("unknown keys are answered with the known ones");
        for key in known.split(", ") {
            assert!(PAGE.contains(&format!("| `{key}` |")), "[{table}] {key} is not described");
            assert!(PAGE.contains(&format!("{key} = ")), "[{table}] {key} is not in the example");
        }
    }
}

#[test]
fn depth_is_limited_and_not_by_the_stack() {
    for opening in ["[", "{a=", "{a=["] {
        let text = format!("a = {}", opening.repeat(100_000));
        assert!(!problems(&text).is_empty(), "{opening}");
    }
    assert!(!problems(&format!("a{} = 1", ".a".repeat(100_000))).is_empty());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text: String) {
        let _ = Settings::from_toml(&text, Path::new(""));
    }

    #[test]
    fn any_numbers_are_read_or_refused(number: f64, whole: i64) {
        for key in ["slo_ms", "rate_per_s", "weight", "idle_timeout_s", "memory_limit_mib", "priority", "max_batch"] {
            let _ = problems(&format!("[models.a]\n{key} = {number:e}"));
            let _ = problems(&format!("[models.a]\n{key} = {whole}"));
        }
    }
}
