//! Tenants on a real server: who is answered, what is there for them, and how much they may ask for.

mod support;

use std::fs;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use support::{Answer, IDENTITY, NETWORK, Served, identity_request, read_answer, start_changed};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use weft_ir::Tensor;
use weft_protocol::grpc::inference::grpc_inference_service_client::GrpcInferenceServiceClient;
use weft_protocol::grpc::inference::*;
use weft_protocol::{InferRequest, InputTensor, RequestParameters, TensorSource};
use weft_repository::{GeneratedKey, RepositoryFiles, Settings, generate_key, scan};
use weft_server::Tenants;

const INFER: &str = "/v2/models/identity/infer";

/// A server that knows two tenants and an administrator. The identity model is red's, the network everybody's.
struct House {
    served: Served,
    tenants: Arc<Tenants>,
    red: GeneratedKey,
    blue: GeneratedKey,
    admin: GeneratedKey,
}

impl House {
    /// With limits for red.
    fn new(limits: &str) -> Self {
        let [red, blue, admin] = [(); 3].map(|()| generate_key().expect("there is randomness"));
        let tenants = Arc::new(Tenants::default());
        let given = tenants.clone();
        let served = start_changed(None, |options| options.tenants = given);
        let house = Self { served, tenants, red, blue, admin };
        house.settle(&house.red, limits);
        house
    }

    /// Reads the settings again, with another key or other limits for red.
    fn settle(&self, red: &GeneratedKey, limits: &str) {
        self.tenants.replace(&self.settings(red, limits)).expect("there are keys");
    }

    fn settings(&self, red: &GeneratedKey, limits: &str) -> Settings {
        let text = format!(
            "[admin]\nkey_hashes = ['{}']\n[tenants.red]\nkey_hashes = ['{}']\n{limits}\n\
             [tenants.blue]\nkey_hashes = ['{}']\n[models.identity]\ntenant = 'red'\n",
            self.admin.hash, red.hash, self.blue.hash,
        );
        let folder = tempfile::tempdir().expect("there is a place for files");
        fs::write(folder.path().join("weft.toml"), text).expect("it is written");
        let read = scan(&RepositoryFiles::in_folder(folder.path())).expect("it is there").settings;
        read.settings.unwrap_or_else(|| panic!("{:?}", read.problems))
    }

    fn get(&self, path: &str, key: &GeneratedKey) -> Answer {
        self.served.get_with(path, &[("x-api-key", &key.key)])
    }

    fn post(&self, path: &str, key: &GeneratedKey, body: &str) -> Answer {
        self.served.post_with(path, &[("x-api-key", &key.key)], body.as_bytes())
    }

    fn infer(&self, key: &GeneratedKey) -> Answer {
        self.post(INFER, key, &identity_request(1))
    }

    async fn client(&self) -> GrpcInferenceServiceClient<Channel> {
        GrpcInferenceServiceClient::new(self.channel().await)
    }

    async fn channel(&self) -> Channel {
        let address = format!("http://{}", self.served.server.address());
        Channel::from_shared(address).unwrap().connect().await.expect("it listens")
    }
}

fn with_key<T>(message: T, key: &GeneratedKey) -> Request<T> {
    with_authorisation(message, &format!("Bearer {}", key.key))
}

fn with_authorisation<T>(message: T, authorisation: &str) -> Request<T> {
    let mut request = Request::new(message);
    let value = MetadataValue::try_from(authorisation).expect("it is plain text");
    request.metadata_mut().insert("authorization", value);
    request
}

fn message() -> ModelInferRequest {
    let tensor = Tensor::from_vec(vec![1, 16], vec![0.5f32; 16]).unwrap();
    let request = InferRequest {
        id: "1".into(),
        parameters: RequestParameters::default(),
        inputs: vec![InputTensor {
            name: "x".into(),
            data_type: tensor.data_type(),
            shape: tensor.shape().to_vec(),
            data: TensorSource::Tensor(tensor),
        }],
        outputs: Vec::new(),
    };
    request.into_grpc(IDENTITY, "").unwrap()
}

#[test]
fn over_http_a_key_opens_and_nothing_else_does() {
    let house = House::new("");
    let (served, body) = (&house.served, identity_request(1));
    let bearer = format!("Bearer {}", house.red.key);
    for header in [("authorization", &*bearer), ("x-api-key", &house.red.key)] {
        let answer = served.post_with(INFER, &[header], body.as_bytes());
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    }
    let missing = served.post(INFER, &body);
    assert_eq!((missing.status, &*missing.reason()), (401, "key_missing"));
    assert_eq!(missing.header("www-authenticate"), Some(r#"Bearer realm="weft""#));
    let last = house.red.key.len() - 1;
    for wrong in ["nonsense", "", &house.red.key[..last], &format!("{}0", house.red.key)] {
        let answer = served.post_with(INFER, &[("x-api-key", wrong)], body.as_bytes());
        assert_eq!((answer.status, &*answer.reason()), (401, "key_unknown"), "{wrong}");
        assert!(answer.header("www-authenticate").is_some_and(|it| it.contains("invalid_token")));
    }
    for path in ["/v2", "/v2/models/identity", "/v2/models/stats", "/v2/models/identity/ready"] {
        assert_eq!(served.get(path).status, 401, "{path}");
    }
    for path in ["/v2/health/live", "/v2/health/ready", "/openapi.json"] {
        assert_eq!(served.get(path).status, 200, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn over_grpc_a_key_opens_and_nothing_else_does() {
    let house = House::new("");
    let mut client = house.client().await;
    assert!(client.model_infer(with_key(message(), &house.red)).await.is_ok());
    let mut plain = Request::new(message());
    plain.metadata_mut().insert("x-api-key", house.red.key.parse().unwrap());
    assert!(client.model_infer(plain).await.is_ok());
    let refused = |status: Status| {
        assert_eq!(status.code(), Code::Unauthenticated, "{status}");
        assert!(status.metadata().contains_key("www-authenticate"));
    };
    refused(client.model_infer(message()).await.unwrap_err());
    let wrong = with_authorisation(message(), "Bearer nonsense");
    refused(client.model_infer(wrong).await.unwrap_err());
    refused(client.server_metadata(ServerMetadataRequest {}).await.unwrap_err());
    let stream = client.model_stream_infer(tokio_stream::once(message())).await;
    refused(stream.unwrap_err());
    assert!(client.server_live(ServerLiveRequest {}).await.unwrap().get_ref().live);
    assert!(client.server_ready(ServerReadyRequest {}).await.unwrap().get_ref().ready);
    let mut health = HealthClient::new(house.channel().await);
    let asked = |service: &str| HealthCheckRequest { service: service.into() };
    assert!(health.check(asked("")).await.is_ok());
    let hidden = health.check(asked(IDENTITY)).await.unwrap_err();
    assert_eq!(hidden.code(), Code::NotFound);
    assert!(health.check(with_key(asked(IDENTITY), &house.red)).await.is_ok());
}

#[test]
fn over_http_a_model_of_others_is_as_unknown_as_one_that_never_was() {
    let house = House::new("");
    let body = identity_request(1);
    for (method, path) in [
        ("POST", "/v2/models/{}/infer"),
        ("POST", "/v2/models/{}/versions/1/infer"),
        ("GET", "/v2/models/{}"),
        ("GET", "/v2/models/{}/versions/9"),
        ("GET", "/v2/models/{}/ready"),
        ("GET", "/v2/models/{}/config"),
        ("GET", "/v2/models/{}/stats"),
        ("GET", "/v2/models/{}/versions/1/stats"),
    ] {
        let ask = |model: &str, key: &GeneratedKey| {
            let path = path.replace("{}", model);
            let answer = match method {
                "GET" => house.get(&path, key),
                _ => house.post(&path, key, &body),
            };
            let text = String::from_utf8_lossy(&answer.body).replace(model, "MODEL");
            (answer.status, text)
        };
        let hidden = ask(IDENTITY, &house.blue);
        assert_eq!(hidden.0, 404, "{path}: {}", hidden.1);
        assert_eq!(hidden, ask("unheard", &house.blue), "{path}");
        if !path.contains("versions/9") {
            assert_eq!(ask(IDENTITY, &house.red).0, 200, "{path}");
        }
    }
    let names = |answer: Answer, list: fn(&Json) -> &Json| -> Vec<String> {
        let document = answer.json();
        let entries = list(&document).as_array().expect("it is a list").clone();
        entries.iter().map(|entry| entry["name"].as_str().unwrap().to_string()).collect()
    };
    for (key, expected) in [
        (&house.red, &[IDENTITY, NETWORK][..]),
        (&house.blue, &[NETWORK]),
        (&house.admin, &[IDENTITY, NETWORK]),
    ] {
        assert_eq!(names(house.post("/v2/repository/index", key, ""), |it| it), expected);
        assert_eq!(names(house.get("/v2/models/stats", key), |it| &it["model_stats"]), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn over_grpc_a_model_of_others_is_as_unknown_as_one_that_never_was() {
    let house = House::new("");
    let mut client = house.client().await;
    let blue = &house.blue;
    let told =
        |status: Status, model: &str| (status.code(), status.message().replace(model, "MODEL"));
    let mut answers: Vec<Vec<(Code, String)>> = Vec::new();
    for model in [IDENTITY, "unheard"] {
        let (name, version) = (model.to_string(), String::new());
        let asked = ModelInferRequest { model_name: name.clone(), ..message() };
        let infer = client.model_infer(with_key(asked.clone(), blue)).await.unwrap_err();
        let metadata = ModelMetadataRequest { name: name.clone(), version: version.clone() };
        let metadata = client.model_metadata(with_key(metadata, blue)).await.unwrap_err();
        let config = ModelConfigRequest { name: name.clone(), version: version.clone() };
        let config = client.model_config(with_key(config, blue)).await.unwrap_err();
        let statistics = ModelStatisticsRequest { name: name.clone(), version: version.clone() };
        let statistics = client.model_statistics(with_key(statistics, blue)).await.unwrap_err();
        let ready = ModelReadyRequest { name, version };
        let ready = client.model_ready(with_key(ready, blue)).await.unwrap().into_inner().ready;
        assert!(!ready, "{model}");
        let stream = with_key(tokio_stream::once(asked), blue);
        let mut stream = client.model_stream_infer(stream).await.unwrap().into_inner();
        let streamed = stream.next().await.unwrap().unwrap().error_message;
        let statuses = [infer, metadata, config, statistics].map(|status| told(status, model));
        assert!(statuses.iter().all(|(code, _)| *code == Code::NotFound), "{statuses:?}");
        answers.push(
            statuses.into_iter().chain([(Code::Ok, streamed.replace(model, "MODEL"))]).collect(),
        );
    }
    assert_eq!(answers[0], answers[1]);
    let index = RepositoryIndexRequest::default();
    let index = client.repository_index(with_key(index, blue)).await.unwrap().into_inner();
    let names: Vec<&str> = index.models.iter().map(|model| &*model.name).collect();
    assert_eq!(names, [NETWORK]);
}

#[test]
fn over_the_rate_a_tenant_is_refused_before_its_body_is_read() {
    let house = House::new("rate_per_s = 0.01\nburst = 2");
    assert_eq!([(); 2].map(|()| house.infer(&house.red).status), [200; 2]);
    // The body is announced and never comes.
    let head = format!(
        "POST {INFER} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: {}\r\ncontent-length: 999\r\n\r\n",
        house.red.key
    );
    let refused = house.served.send(&head, &[]);
    assert_eq!((refused.status, &*refused.reason()), (429, "over_rate"));
    let wait: u64 = refused.header("retry-after").expect("it says when").parse().unwrap();
    assert!((90..=100).contains(&wait), "{wait}");
    let says = refused.json()["error"].as_str().unwrap().to_string();
    assert!(says.contains("0.01 requests per second"), "{says}");
    let path = format!("/v2/models/{NETWORK}/infer");
    let wrong = house.post(&path, &house.blue, r#"{"inputs":[]}"#).status;
    assert_eq!(wrong, 400, "others are asked what they want");
    assert_eq!(house.get("/v2/models/identity", &house.red).status, 200, "only inference counts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn over_the_rate_a_call_is_refused_and_so_is_the_message_of_a_stream() {
    let house = House::new("rate_per_s = 0.01\nburst = 2");
    let mut client = house.client().await;
    assert!(client.model_infer(with_key(message(), &house.red)).await.is_ok());
    let two = with_key(tokio_stream::iter([message(), message()]), &house.red);
    let stream = client.model_stream_infer(two).await.unwrap().into_inner();
    let mut errors: Vec<String> =
        stream.map(|answer| answer.unwrap().error_message).collect::<Vec<_>>().await;
    errors.sort();
    assert!(errors[0].is_empty() && errors[1].contains("requests per second"), "{errors:?}");
    let refused = client.model_infer(with_key(message(), &house.red)).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(refused.metadata().contains_key("retry-after"));
}

#[test]
fn no_more_are_in_flight_than_may_be() {
    let house = House::new("concurrency = 1");
    let body = identity_request(1);
    let head = format!(
        "POST {INFER} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: {}\r\ncontent-length: {}\r\n\r\n",
        house.red.key,
        body.len()
    );
    let mut slow = house.served.connect();
    slow.write_all(head.as_bytes()).expect("it is connected");
    // It is in flight once its head was read.
    let end = Instant::now() + Duration::from_secs(20);
    let refused = loop {
        let answer = house.infer(&house.red);
        if answer.status != 200 || Instant::now() > end {
            break answer;
        }
    };
    assert_eq!((refused.status, &*refused.reason()), (429, "over_concurrency"));
    assert_eq!(refused.header("retry-after"), Some("1"));
    slow.write_all(body.as_bytes()).expect("it is connected");
    assert_eq!(read_answer(&mut slow).status, 200);
    assert_eq!(house.infer(&house.red).status, 200, "its place is free again");
}

#[test]
fn a_noisy_tenant_gets_its_rate_and_a_quiet_one_all_it_asks_for() {
    const RATE: f64 = 50.0;
    let house = House::new(&format!("rate_per_s = {RATE}\nburst = 5"));
    let is_over = AtomicBool::new(false);
    let path = format!("/v2/models/{NETWORK}");
    std::thread::scope(|scope| {
        let noisy = scope.spawn(|| {
            let (start, mut served, mut asked) = (Instant::now(), 0, 0);
            // Long enough to be refused, whatever else the machine does.
            while !is_over.load(Ordering::Relaxed) || served == asked {
                let status = house.infer(&house.red).status;
                assert!(matches!(status, 200 | 429), "{status}");
                served += u32::from(status == 200);
                asked += 1;
            }
            (served, asked, start.elapsed())
        });
        for _ in 0..50 {
            assert_eq!(house.get(&path, &house.blue).status, 200);
            let refused = house.post(&format!("{path}/infer"), &house.blue, "{}").status;
            assert_eq!(refused, 400, "it is wrong, and not too much");
        }
        is_over.store(true, Ordering::Relaxed);
        let (served, asked, took) = noisy.join().expect("it ends");
        let most = 5.0 + RATE * took.as_secs_f64();
        assert!(f64::from(served) <= most && served < asked, "{served} of {asked}, {most}");
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn who_is_known_follows_the_settings() {
    let house = House::new("");
    let mut client = house.client().await;
    let (messages, received) = tokio::sync::mpsc::channel(1);
    let stream = with_key(ReceiverStream::new(received), &house.red);
    let mut stream = client.model_stream_infer(stream).await.unwrap().into_inner();
    messages.send(message()).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap().error_message, "");

    let another = generate_key().unwrap();
    house.settle(&another, "");
    assert_eq!(house.infer(&house.red).status, 401);
    assert_eq!(house.infer(&another).status, 200);
    messages.send(message()).await.unwrap();
    let told = stream.next().await.unwrap().unwrap().error_message;
    assert!(told.contains("not known"), "a stream does not outlive its key: {told}");

    assert!(house.tenants.replace(&Settings::default()).is_err());
    assert_eq!(house.served.get("/v2").status, 401, "a file that is gone opens nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn administration_is_for_administrators() {
    let house = House::new("");
    for (method, path, status) in [
        ("POST", "/v2/repository/models/identity/unload", 200),
        ("POST", "/v2/repository/models/identity/load", 200),
        ("POST", "/v2/systemsharedmemory/region/r/register", 400),
        ("POST", "/v2/systemsharedmemory/unregister", 200),
        ("POST", "/v2/cudasharedmemory/unregister", 200),
        ("GET", "/v2/trace/setting", 501),
        ("POST", "/v2/logging", 501),
    ] {
        let ask = |key: &GeneratedKey| match method {
            "GET" => house.get(path, key),
            _ => house.post(path, key, "{}"),
        };
        let refused = ask(&house.red);
        assert_eq!((refused.status, &*refused.reason()), (403, "not_administrator"), "{path}");
        assert_eq!(ask(&house.admin).status, status, "{path}");
    }
    let mut client = house.client().await;
    let load = || RepositoryModelLoadRequest { model_name: IDENTITY.into(), ..Default::default() };
    let refused = client.repository_model_load(with_key(load(), &house.red)).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    assert!(client.repository_model_load(with_key(load(), &house.admin)).await.is_ok());
    let logs = with_key(LogSettingsRequest::default(), &house.red);
    assert_eq!(client.log_settings(logs).await.unwrap_err().code(), Code::PermissionDenied);
}

#[test]
fn shared_memory_is_its_tenants_alone() {
    let house = House::new("");
    let key = format!("/weft-tenants-{}", std::process::id());
    let file = format!("/dev/shm{key}");
    let floats: Vec<u8> = (0..16u8).flat_map(|number| f32::from(number).to_le_bytes()).collect();
    fs::write(&file, &floats).expect("there is shared memory");
    let register = json!({ "key": key, "offset": 0, "byte_size": 64 }).to_string();
    let path = "/v2/systemsharedmemory/region/red%2Fbuffer/register";
    let registered = house.post(path, &house.admin, &register).status;
    fs::remove_file(&file).expect("it is there");
    assert_eq!(registered, 200);

    let infer = |model: &str, region: &str, key: &GeneratedKey| {
        let parameters = json!({ "shared_memory_region": region, "shared_memory_byte_size": 64 });
        let input = json!({
            "name": "x", "shape": [1, 16], "datatype": "FP32", "parameters": parameters,
        });
        let body = json!({ "inputs": [input] }).to_string();
        house.post(&format!("/v2/models/{model}/infer"), key, &body)
    };
    let answer = infer(IDENTITY, "buffer", &house.red);
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    assert_eq!(answer.json()["outputs"][0]["data"][15], 15.0);

    // Blue borrows red's model, and still sees nothing of its memory.
    let mut settings = house.settings(&house.red, "");
    settings.tenants.get_mut("blue").unwrap().models.insert(IDENTITY.into());
    house.tenants.replace(&settings).unwrap();
    for region in ["buffer", "red/buffer"] {
        let refused = infer(IDENTITY, region, &house.blue);
        assert_eq!((refused.status, &*refused.reason()), (404, "unknown_region"), "{region}");
    }
    let listed = |key: &GeneratedKey| -> Vec<String> {
        let document = house.get("/v2/systemsharedmemory/status", key).json().to_string();
        let shown = ["red/buffer", "buffer"].into_iter();
        shown.filter(|name| document.contains(&format!("\"{name}\""))).map(String::from).collect()
    };
    assert_eq!(listed(&house.red), ["buffer"]);
    assert_eq!(listed(&house.admin), ["red/buffer"]);
    assert!(listed(&house.blue).is_empty());
    let path = "/v2/systemsharedmemory/region/buffer/status";
    assert_eq!(house.get(path, &house.red).status, 200);
    assert_eq!(house.get(path, &house.blue).status, 404);
}
