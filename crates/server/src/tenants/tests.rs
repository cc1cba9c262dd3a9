use std::fs;
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue};
use weft_repository::{GeneratedKey, RepositoryFiles, Settings, generate_key, scan};

use super::*;

fn settings(text: &str) -> Settings {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("weft.toml"), text).unwrap();
    let entry = scan(&RepositoryFiles::in_folder(folder.path())).unwrap().settings;
    entry.settings.unwrap_or_else(|| panic!("{:?}", entry.problems))
}

/// Red may ask for little and owns a model, blue may ask for anything.
fn two(red: &GeneratedKey, blue: &GeneratedKey, more: &str) -> Settings {
    settings(&format!(
        "[tenants.red]\nkey_hashes = ['{}']\nrate_per_s = 1\nburst = 2\nconcurrency = 3\n{more}\n\
         [tenants.blue]\nkey_hashes = ['{}']\n[models.own]\ntenant = 'red'",
        red.hash, blue.hash,
    ))
}

fn headers(key: &str) -> HeaderMap {
    HeaderMap::from_iter([("x-api-key".parse().unwrap(), HeaderValue::from_str(key).unwrap())])
}

#[test]
fn a_server_without_keys_is_for_everybody_whatever_they_send() {
    let tenants = Tenants::default();
    for headers in [HeaderMap::new(), headers("anything")] {
        let caller = tenants.let_in(Access::Administrators, &headers).unwrap();
        assert!(caller.sees("any") && caller.admit(Instant::now()).is_ok());
    }
}

#[test]
fn administration_takes_a_key_where_there_are_keys_or_strangers() {
    let [tenant, admin] = [(); 2].map(|()| generate_key().unwrap());
    let of_admin = format!("[admin]\nkey_hashes = ['{}']\n", admin.hash);
    let of_tenant = format!("[tenants.red]\nkey_hashes = ['{}']\n", tenant.hash);
    let may = |text: &str, headers: &HeaderMap| match Tenants::new(&settings(text))
        .let_in(Access::Administrators, headers)
    {
        Ok(_) => "yes",
        Err(ServeError::NotAdministrator) => "no",
        Err(ServeError::KeyMissing) => "key?",
        Err(error) => panic!("{error}"),
    };
    let [none, tenants, admins] = [HeaderMap::new(), headers(&tenant.key), headers(&admin.key)];
    assert_eq!(may("", &none), "yes");
    assert_eq!(may("[server]\nanonymous = true", &none), "no", "others may reach it");
    assert_eq!(may(&of_admin, &none), "no");
    assert_eq!(may(&of_admin, &admins), "yes");
    assert_eq!(may(&of_tenant, &none), "key?");
    assert_eq!(may(&of_tenant, &tenants), "no");
    assert_eq!(may(&format!("{of_admin}{of_tenant}"), &tenants), "no");
    assert_eq!(may(&format!("{of_admin}{of_tenant}"), &admins), "yes");
}

#[test]
fn what_is_for_everybody_shows_strangers_nothing_more() {
    let [red, blue] = [(); 2].map(|()| generate_key().unwrap());
    let tenants = Tenants::new(&two(&red, &blue, ""));
    for headers in [HeaderMap::new(), headers("wrong")] {
        let stranger = tenants.let_in(Access::Everybody, &headers).unwrap();
        assert!(!stranger.sees("any") && stranger.admit(Instant::now()).is_err());
    }
    let caller = |key: &GeneratedKey| tenants.caller(&headers(&key.key)).unwrap();
    assert!(caller(&red).sees("own") && caller(&red).sees("any"));
    assert!(!caller(&blue).sees("own") && caller(&blue).sees("any"));
}

#[test]
fn limits_are_the_tenants_own_and_outlive_a_change_elsewhere() {
    let [red, blue, other] = [(); 3].map(|()| generate_key().unwrap());
    let tenants = Tenants::new(&two(&red, &blue, ""));
    let now = Instant::now();
    let admit = |key: &GeneratedKey, at| tenants.caller(&headers(&key.key)).unwrap().admit(at);
    let held: Vec<_> = (0..2).map(|_| admit(&red, now).unwrap()).collect();
    let refused = admit(&red, now).unwrap_err();
    assert!(matches!(refused, ServeError::OverRate { burst: 2, .. }), "{refused}");
    assert!((0..100).all(|_| admit(&blue, now).is_ok()), "others are not touched");

    tenants.replace(&two(&red, &other, "weight = 2")).unwrap();
    assert!(matches!(tenants.caller(&headers(&blue.key)), Err(ServeError::KeyUnknown)));
    assert!(matches!(admit(&red, now), Err(ServeError::OverRate { .. })), "the rate stays used");
    let third = admit(&red, now + Duration::from_secs(2)).unwrap();
    let refused = admit(&red, now + Duration::from_secs(9)).unwrap_err();
    assert!(matches!(refused, ServeError::OverConcurrency { limit: 3 }), "{refused}");
    drop((held, third));
    assert!(admit(&red, now + Duration::from_secs(9)).is_ok());

    let faster = two(&red, &other, "").tenants["red"].clone();
    let mut settings = two(&red, &other, "");
    let faster = weft_repository::Tenant { rate_per_s: Some(5.0), ..faster };
    settings.tenants.insert("red".into(), faster);
    tenants.replace(&settings).unwrap();
    assert!(admit(&red, now + Duration::from_secs(9)).is_ok(), "a new limit begins anew");
}

#[test]
fn keys_are_needed_until_it_is_said_that_they_are_not() {
    let [red, blue] = [(); 2].map(|()| generate_key().unwrap());
    let tenants = Tenants::new(&two(&red, &blue, ""));
    assert_eq!(tenants.replace(&Settings::default()), Err(WouldOpen));
    assert!(matches!(tenants.caller(&HeaderMap::new()), Err(ServeError::KeyMissing)));
    assert!(tenants.caller(&headers(&red.key)).is_ok());
    tenants.replace(&settings("[server]\nanonymous = true")).unwrap();
    assert!(tenants.caller(&HeaderMap::new()).is_ok());
}

#[test]
fn the_port_of_administration_takes_an_administrators_key_where_there_is_one() {
    let [admin, red] = [(); 2].map(|()| generate_key().unwrap());
    let text = format!(
        "[admin]\nkey_hashes = ['{}']\n[tenants.red]\nkey_hashes = ['{}']",
        admin.hash, red.hash
    );
    let tenants = Tenants::new(&settings(&text));
    assert!(tenants.authorise(&headers(&admin.key)).is_ok());
    let refused = |headers| tenants.authorise(&headers).unwrap_err();
    assert!(matches!(refused(headers(&red.key)), ServeError::NotAdministrator));
    assert!(matches!(refused(headers("wrong")), ServeError::KeyUnknown));
    assert!(matches!(refused(HeaderMap::new()), ServeError::KeyMissing));
    assert!(Tenants::default().authorise(&HeaderMap::new()).is_ok());
}

#[test]
fn regions_of_one_tenant_are_not_there_for_another() {
    let [red, blue, admin] = [(); 3].map(|()| generate_key().unwrap());
    let mut settings = two(&red, &blue, "");
    settings.admin.key_hashes.push(admin.hash);
    let tenants = Tenants::new(&settings);
    let [red, blue, admin] = [red, blue, admin].map(|key| tenants.caller(&headers(&key.key)));
    let (red, blue, admin) = (red.unwrap(), blue.unwrap(), admin.unwrap());
    let region = admin.region("red/buffer");
    assert_eq!(region, red.region("buffer"));
    assert_ne!(region, blue.region("buffer"));
    assert_ne!(region, blue.region("red/buffer"));
    assert_ne!(region, anybody().region("red/buffer"));
    assert_eq!(red.name_of_region(&region).as_deref(), Some("buffer"));
    assert_eq!(admin.name_of_region(&region).as_deref(), Some("red/buffer"));
    assert_eq!(blue.name_of_region(&region), None);
    assert_eq!(anybody().name_of_region(&region), None);
}
