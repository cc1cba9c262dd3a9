use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// A folder with these files; a name that ends with `/` is an empty folder.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let root = TempDir::new().unwrap();
    add(root.path(), files);
    root
}

fn add(root: &Path, files: &[(&str, &str)]) {
    for (name, content) in files {
        let path = root.join(name);
        if name.ends_with('/') {
            fs::create_dir_all(path).unwrap();
        } else {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }
}

fn scanned(root: &Path) -> Repository {
    scan(&RepositoryFiles::in_folder(root)).unwrap()
}

/// Models as `name: versions`.
fn shown(repository: &Repository) -> Vec<String> {
    let model = |(name, model): (&str, &crate::Model)| {
        let versions: Vec<String> = model.versions.keys().map(u64::to_string).collect();
        format!("{name}: {}", versions.join(" "))
    };
    repository.models().map(model).collect()
}

fn problems(repository: &Repository) -> Vec<String> {
    repository.all_problems().map(ToString::to_string).collect()
}

fn notes(repository: &Repository) -> Vec<String> {
    repository.all_notes().map(ToString::to_string).collect()
}

#[test]
fn both_layouts_are_read_side_by_side() {
    let root = folder(&[
        ("resnet/1/model.onnx", "a"),
        ("resnet/12/model.onnx", "bc"),
        ("resnet/12/model.onnx.data", "weights"),
        ("resnet/warmup/sample", ""),
        ("resnet/labels.txt", ""),
        ("bert.onnx", "plain"),
        ("bert.onnx_data", "weights"),
        ("README.md", ""),
    ]);
    let repository = scanned(root.path());
    assert_eq!(shown(&repository), ["bert: 1", "resnet: 1 12"]);
    assert_eq!(problems(&repository), Vec::<String>::new());
    assert_eq!(repository.settings.settings, Some(crate::Settings::default()));

    let latest = &repository.model("resnet").unwrap().versions[&12];
    assert_eq!(latest.file, root.path().join("resnet/12/model.onnx"));
    let files: Vec<&str> =
        latest.fingerprint.files().iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(files, ["model.onnx", "model.onnx.data"]);
    assert_eq!(latest.fingerprint.length_bytes(), 9);
    assert_eq!(repository.model("bert").unwrap().versions[&1].fingerprint.files().len(), 2);
    let served = repository.model("resnet").unwrap().served_versions();
    assert_eq!(served.into_keys().collect::<Vec<_>>(), [12], "the latest one, by number");
}

#[test]
fn an_empty_repository_is_a_repository_and_an_absent_one_is_an_error() {
    let root = folder(&[]);
    assert_eq!(shown(&scanned(root.path())), Vec::<String>::new());
    let error = scan(&RepositoryFiles::in_folder(root.path().join("none"))).unwrap_err();
    assert!(error.to_string().contains("cannot be read"), "{error}");
    let file = folder(&[("a", "")]);
    assert!(scan(&RepositoryFiles::in_folder(file.path().join("a"))).is_err());
}

#[test]
fn a_broken_model_is_a_problem_of_its_own_and_a_broken_version_too() {
    let root = folder(&[
        ("good/1/model.onnx", ""),
        ("empty/", ""),
        ("flat/model.onnx", ""),
        ("half/1/model.onnx", ""),
        ("half/2/", ""),
        ("half/3/model.onnx/", ""),
        ("numbers/0/model.onnx", ""),
        ("numbers/007/model.onnx", ""),
        ("numbers/99999999999999999999/model.onnx", ""),
        ("wrong/1/model.onnx", ""),
        ("wrong/config.pbtxt", "name: 'wrong'\nmax_batch_size: -1\nfoo: 1"),
        ("renamed/1/model.onnx", ""),
        ("renamed/config.pbtxt", "name: 'a/b'"),
        ("folder/1/model.onnx", ""),
        ("folder/config.pbtxt/", ""),
    ]);
    let repository = scanned(root.path());
    assert_eq!(shown(&repository), ["good: 1", "half: 1"]);
    assert_eq!(
        problems(&repository),
        [
            "empty: there is no version to serve: no folder 1/ with a model.onnx",
            "flat: model.onnx lies in the model's folder; it belongs into 1/, the version's",
            "folder/config.pbtxt: is not a file",
            "half/2: there is no model.onnx in it",
            "half/3: model.onnx is not a file",
            "numbers/99999999999999999999: the number of this version is too large",
            "numbers: there is no version to serve: no folder 1/ with a model.onnx",
            "renamed/config.pbtxt: the name \"a/b\" is not that of the folder, \"renamed\"",
            "wrong/config.pbtxt:2: 'max_batch_size' must be a whole number of at least 0, not -1",
            "wrong/config.pbtxt:3: unknown field 'foo'",
        ]
    );
    assert_eq!(notes(&repository).len(), 2, "{:?}", notes(&repository));
    assert!(repository.entries.contains_key("wrong"), "it is there, and is not served");
}

#[test]
fn a_configuration_chooses_versions_and_their_file() {
    let root = folder(&[
        ("a/1/net.onnx", ""),
        ("a/2/net.onnx", ""),
        ("a/3/net.onnx", ""),
        (
            "a/config.pbtxt",
            "default_model_filename: 'net.onnx' version_policy { specific { versions: [1, 3] } }",
        ),
        ("b/1/model.onnx", ""),
        ("b/config.pbtxt", "version_policy { specific { versions: [1, 7] } }"),
        ("c/1/model.onnx", ""),
        ("c/config.pbtxt", "version_policy { specific { versions: 7 } }"),
    ]);
    let repository = scanned(root.path());
    let served = |name| {
        let model: &crate::Model = repository.model(name).unwrap();
        model.served_versions().into_keys().collect::<Vec<_>>()
    };
    assert_eq!(served("a"), [1, 3]);
    assert_eq!(served("b"), [1]);
    assert_eq!(repository.model("c"), None);
    let found = problems(&repository);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("b: version_policy names version 7"), "{found:?}");
    assert!(found[1].starts_with("c: version_policy names version 7"), "{found:?}");
}

#[test]
fn past_the_limit_a_model_is_broken_and_a_root_is_not_read() {
    let root = folder(&[
        ("a/1/model.onnx", ""),
        ("b/1/model.onnx", ""),
        ("b/1/1", ""),
        ("b/1/2", ""),
        ("c.onnx", ""),
    ]);
    let files = RepositoryFiles::in_folder(root.path());
    assert_eq!(shown(&scan_up_to(9, &files).unwrap()), ["a: 1", "b: 1", "c: 1"]);
    let less = scan_up_to(8, &files).unwrap();
    assert_eq!(shown(&less), ["a: 1", "c: 1"]);
    assert!(problems(&less)[0].contains("more than 8 entries"), "{:?}", problems(&less));
    let error = scan_up_to(2, &files).unwrap_err();
    assert!(error.reason.contains("more than 2 entries"), "{error}");
}

#[test]
fn odd_names_are_served_and_unusable_ones_are_said() {
    let root = folder(&[
        ("größe 模型.v1/1/model.onnx", ""),
        ("a.b.onnx", ""),
        (" spaced/1/model.onnx", ""),
        ("line\nbreak.onnx", ""),
        (".onnx", ""),
    ]);
    fs::write(root.path().join(OsStr::from_bytes(b"\xff.onnx")), "").unwrap();
    let repository = scanned(root.path());
    assert_eq!(shown(&repository), ["a.b: 1", "größe 模型.v1: 1"]);
    let found = problems(&repository);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].contains("begin or end with a space"), "{found:?}");
    assert!(found[1].contains("control characters") && !found[1].contains('\n'), "{found:?}");
    assert!(found[2].contains("UTF-8"), "{found:?}");
}

#[test]
fn two_models_of_one_name_are_not_guessed_between() {
    let root = folder(&[("a/1/model.onnx", ""), ("a.onnx", ""), ("b.onnx", "")]);
    let repository = scanned(root.path());
    assert_eq!(shown(&repository), ["b: 1"]);
    assert_eq!(
        problems(&repository),
        ["a: there are two models 'a'; neither is served until one of them is gone"]
    );
}

#[test]
fn hidden_and_temporary_entries_are_passed_over() {
    let root = folder(&[
        (".git/1/model.onnx", ""),
        ("..2026_11_15/1/model.onnx", ""),
        ("a.onnx~", ""),
        ("a.onnx.part", ""),
        (".a.onnx.swp", ""),
        ("b/1/model.onnx", ""),
        ("b/1/.model.onnx.swp", ""),
        ("b/.config.pbtxt.swp", "not read {"),
        ("b/2~/model.onnx", ""),
    ]);
    let repository = scanned(root.path());
    assert_eq!(shown(&repository), ["b: 1"]);
    assert_eq!(problems(&repository), Vec::<String>::new());
    assert_eq!(repository.model("b").unwrap().versions[&1].fingerprint.files().len(), 1);
}

#[test]
fn links_are_followed_and_those_that_lead_nowhere_are_said() {
    let elsewhere = folder(&[("net/1/model.onnx", ""), ("other.onnx", "")]);
    let root = folder(&[]);
    let link = |from: &Path, name: &str| symlink(from, root.path().join(name)).unwrap();
    link(&elsewhere.path().join("net"), "linked");
    link(&elsewhere.path().join("other.onnx"), "file.onnx");
    link(Path::new("nowhere"), "dangling.onnx");
    link(Path::new("loop"), "loop");
    link(root.path(), "itself");
    let repository = scanned(root.path());
    assert_eq!(shown(&repository), ["file: 1", "linked: 1"]);
    let found = problems(&repository);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].starts_with("dangling.onnx: cannot be read"), "{found:?}");
    assert!(found[1].starts_with("itself: there is no version"), "{found:?}");
    assert!(found[2].starts_with("loop: cannot be read"), "{found:?}");
}

#[test]
fn what_is_not_a_file_is_never_opened() {
    let root = folder(&[("a/1/model.onnx", "")]);
    let listener =
        |name: &str| std::os::unix::net::UnixListener::bind(root.path().join(name)).unwrap();
    let _sockets = [listener("b.onnx"), listener("a/config.pbtxt"), listener("weft.toml")];
    let repository = scanned(root.path());
    assert_eq!(shown(&repository), Vec::<String>::new());
    assert_eq!(
        problems(&repository),
        [
            "weft.toml: is not a file",
            "a/config.pbtxt: is not a file",
            "b.onnx: is neither a file nor a folder",
        ]
    );
    assert_eq!(repository.settings.settings, None);
}

#[test]
fn a_change_of_any_file_is_seen() {
    let root = folder(&[
        ("a/1/model.onnx", "one"),
        ("a/1/weights.bin", "one"),
        ("b.onnx", "one"),
        ("c.onnx", "one"),
    ]);
    let version =
        |repository: &Repository, name| repository.model(name).unwrap().versions[&1].clone();
    let before = scanned(root.path());
    assert_eq!(before, scanned(root.path()), "looking changes nothing");
    add(root.path(), &[("a/1/weights.bin", "longer"), ("new", "one")]);
    // Of the same length and, where clocks are coarse, of the same time: but another file.
    fs::rename(root.path().join("new"), root.path().join("b.onnx")).unwrap();
    let after = scanned(root.path());
    for name in ["a", "b"] {
        assert_ne!(version(&before, name), version(&after, name), "{name}");
    }
    assert_eq!(version(&before, "c"), version(&after, "c"));
}

#[test]
fn settings_are_read_from_the_root_or_from_where_is_said() {
    let root = folder(&[
        ("a.onnx", ""),
        ("weft.toml", "[models.a]\nslo_ms = 20\n\n[models.b]\nweight = 2\n"),
        ("other/other.toml", "[device]\nprofiles = 'p.toml'"),
    ]);
    let repository = scanned(root.path());
    let slo = repository.model_settings("a").unwrap().slo.unwrap();
    assert_eq!(slo.latency, weft_scheduler::Span::from_s(0.02));
    assert_eq!(
        problems(&repository)[0],
        "weft.toml:4: there is no model 'b' in the repository",
        "and the rest of the file holds"
    );

    let settings = root.path().join("other/other.toml");
    let files = RepositoryFiles { root: root.path().into(), settings: Some(settings) };
    let other = scan(&files).unwrap();
    let device = &other.settings.settings.as_ref().unwrap().device;
    assert_eq!(device.profiles.as_deref(), Some(root.path().join("other/p.toml").as_path()));

    let files = RepositoryFiles { root: root.path().into(), settings: Some("/none.toml".into()) };
    let none = scan(&files).unwrap();
    assert_eq!(none.settings.settings, None, "a file that was asked for must be there");
    assert_eq!(none.model_settings("a"), None);
}

#[test]
fn a_version_that_lost_its_file_stays_as_it_was_until_its_folder_is_gone() {
    let root = folder(&[("a/1/model.onnx", ""), ("a/2/model.onnx", "")]);
    let before = scanned(root.path());
    fs::remove_file(root.path().join("a/2/model.onnx")).unwrap();
    let emptied = scanned(root.path()).keeping_what_worked(&before);
    assert_eq!(emptied.model("a"), before.model("a"));
    assert_eq!(problems(&emptied), ["a/2: there is no model.onnx in it"]);
    fs::remove_dir(root.path().join("a/2")).unwrap();
    let gone = scanned(root.path()).keeping_what_worked(&emptied);
    assert_eq!(shown(&gone), ["a: 1"]);
}

#[test]
fn what_is_broken_stays_as_it_was_and_what_is_gone_is_gone() {
    let root =
        folder(&[("a/1/model.onnx", ""), ("b.onnx", ""), ("weft.toml", "[models.a]\nweight = 3")]);
    let before = scanned(root.path());
    add(root.path(), &[("a/config.pbtxt", "{"), ("weft.toml", "[models.a")]);
    fs::remove_file(root.path().join("b.onnx")).unwrap();
    let after = scanned(root.path()).keeping_what_worked(&before);
    assert_eq!(after.model("a"), before.model("a"));
    assert_eq!(after.model_settings("a").unwrap().weight, 3.0);
    assert_eq!(after.model("b"), None);
    assert_eq!(problems(&after).len(), 2, "{:?}", problems(&after));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_content_of_the_texts_is_read_or_refused(config: Vec<u8>, settings: Vec<u8>) {
        let root = folder(&[("a/1/model.onnx", ""), ("b.onnx", "")]);
        fs::write(root.path().join("a/config.pbtxt"), config).unwrap();
        fs::write(root.path().join("weft.toml"), settings).unwrap();
        let repository = scanned(root.path());
        prop_assert!(repository.model("b").is_some());
        prop_assert!(repository.model("a").is_some() || !repository.entries["a"].problems.is_empty());
        let usable = repository.settings.settings.is_some();
        prop_assert!(usable || !repository.settings.problems.is_empty());
    }
}
