//! Folders that cannot be written, and disks that are full.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use weft_device::KernelChoices;
use weft_tuner::choices::Choices;
use weft_tuner::database::{Database, DatabaseError, Method};

use crate::processes::{file, part_of};
use crate::sample::{choice, folder, measured, operator, platform, task};

const NOBODY: u32 = 65534;

/// What holds where neither the file nor its folder can be written.
fn reads_and_does_not_write(path: &Path) {
    let database = Database::open_read_only(path).unwrap();
    let choices = Choices::load(&database, &platform("here")).unwrap();
    assert_eq!(choices.choice(&operator("conv"), 8).as_deref(), Some("a"));
    let results = [
        database.record_choice(&task("conv", 8), &choice("b", 5)),
        Database::open(path).map(|_| ()),
    ];
    for result in results {
        let Err(error) = result else { panic!("it was written") };
        assert!(matches!(error, DatabaseError::Unwritable { .. }), "{error}");
        assert!(error.to_string().contains("writable"));
    }
}

#[test]
#[ignore = "a part of another test, which runs it as another user"]
fn as_nobody() {
    let Some(path) = file() else { return };
    reads_and_does_not_write(&path);
}

/// Takes away the right to write from a folder and the files in it, and looks at what holds then. The folder is given back
/// so that it can be removed.
fn check_without_rights(folder: &Path, file_mode: u32) {
    let path = folder.join("tuning.db");
    let is_root = fs::metadata(&path).unwrap().uid() == 0;
    let binary = folder.join("test");
    fs::copy(env::current_exe().unwrap(), &binary).unwrap();
    let allow =
        |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    for file in fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
        allow(&file, if file == binary { 0o555 } else { file_mode });
    }
    allow(folder, 0o555);
    // Root may write everywhere.
    if is_root {
        let mut command = part_of(&binary, "places::as_nobody", &path);
        let output = command.uid(NOBODY).gid(NOBODY).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    } else {
        reads_and_does_not_write(&path);
    }
    allow(folder, 0o755);
}

#[test]
fn a_folder_that_cannot_be_written_can_be_read() {
    for file_mode in [0o444, 0o666] {
        let (folder, path) = folder();
        let database = Database::open(&path).unwrap();
        database.record_choice(&task("conv", 8), &choice("a", 5)).unwrap();
        drop(database);
        check_without_rights(folder.path(), file_mode);
    }
}

#[test]
fn so_can_one_in_which_a_process_was_killed() {
    let (original, path) = folder();
    let database = Database::open(&path).unwrap();
    database.record_choice(&task("conv", 8), &choice("a", 5)).unwrap();
    let (copy, _) = folder();
    for file in fs::read_dir(original.path()).unwrap().map(Result::unwrap) {
        fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    assert!(fs::metadata(copy.path().join("tuning.db-wal")).unwrap().len() > 0);
    check_without_rights(copy.path(), 0o444);
}

#[test]
#[ignore = "mounts a small disk, which takes root"]
fn a_disk_that_is_full_is_an_error_and_keeps_what_was_recorded() {
    let (folder, _) = folder();
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=512k", "tmpfs"])
        .arg(folder.path())
        .status()
        .unwrap();
    assert!(mount.success());
    let path = folder.path().join("tuning.db");
    let database = Database::open(&path).unwrap();
    let mut recorded = 0;
    let error = loop {
        let candidate = format!("candidate {recorded}");
        match database.record_trial(&task("conv", 8), &candidate, &measured(5, Method::Alone)) {
            Ok(()) => recorded += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, DatabaseError::Full(_)), "{error}");
    drop(database);
    let database = Database::open_read_only(&path).unwrap();
    assert_eq!(database.known_trials(&task("conv", 8)).unwrap().len(), recorded);
    database.check().unwrap();
    drop(database);
    assert!(Command::new("umount").arg(folder.path()).status().unwrap().success());
}
