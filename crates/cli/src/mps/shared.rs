//! The one service of a user: started by the first who needs it, ended by the last.

use std::fs::{DirBuilder, File, symlink_metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use rustix::process::getuid;

use super::control::Control;
use super::holders::Holder;

/// Names the folder that the service lives in.
pub(crate) const FOLDER_VARIABLE: &str = "WEFT_MPS_DIR";

/// The longest name of the folder: those of the sockets in it are limited to 107 bytes by the operating system.
const MAX_FOLDER_BYTES: usize = 80;

/// The service; who lets go of it last ends it.
pub(crate) struct SharedMps {
    control: Control,
    /// `None` where somebody else has started it, and ends it.
    holder: Option<Holder>,
}

impl SharedMps {
    /// The service that the environment names, where it answers; else that of the user, started where it is not there.
    pub(crate) fn join() -> Result<Self> {
        if let Some(control) = Control::of_environment().filter(Control::answers) {
            return Ok(Self { control, holder: None });
        }
        let folder = folder();
        make_private(&folder)?;
        let control = Control::in_folder(&folder);
        let ensure = || if control.answers() { Ok(()) } else { control.start() };
        let holder = Holder::join(&folder, ensure)?;
        Ok(Self { control, holder: Some(holder) })
    }

    /// Has a process use this service.
    pub(crate) fn apply(&self, command: &mut Command) {
        self.control.apply(command);
    }

    /// A lock by which a program that is started while this is open keeps the service, also without this process.
    pub(crate) fn for_program(&self) -> Result<Option<File>> {
        self.holder.as_ref().map(Holder::for_program).transpose()
    }
}

impl Drop for SharedMps {
    fn drop(&mut self) {
        if let Some(holder) = self.holder.take() {
            let _ = holder.leave(|| self.control.quit());
        }
    }
}

fn folder() -> PathBuf {
    let named = |name| std::env::var_os(name).filter(|folder| !folder.is_empty());
    if let Some(folder) = named(FOLDER_VARIABLE) {
        return folder.into();
    }
    match named("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_dir()) {
        Some(folder) => folder.join("weft/mps"),
        None => PathBuf::from(format!("/tmp/weft-mps-{}", getuid().as_raw())),
    }
}

/// Makes a folder that is this user's alone, or finds it so.
fn make_private(folder: &Path) -> Result<()> {
    let name = folder.display();
    ensure!(folder.is_absolute(), "{FOLDER_VARIABLE} must be an absolute path, not {name}");
    ensure!(
        folder.as_os_str().as_bytes().len() <= MAX_FOLDER_BYTES,
        "the name of the folder of the MPS service is too long for its sockets: {name}; \
         {FOLDER_VARIABLE} names another"
    );
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("cannot make {name}"))?;
    let about = symlink_metadata(folder).with_context(|| format!("cannot look at {name}"))?;
    let is_ours = about.is_dir() && about.uid() == getuid().as_raw() && about.mode() & 0o022 == 0;
    ensure!(is_ours, "{name} can be written by others; {FOLDER_VARIABLE} names another folder");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_folder_that_others_may_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mine = folder.path().join("mine/mps");
        make_private(&mine).unwrap();
        make_private(&mine).unwrap();
        fs::set_permissions(&mine, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(make_private(&mine).unwrap_err().to_string().contains("by others"));
        let link = folder.path().join("link");
        symlink("/tmp", &link).unwrap();
        assert!(make_private(&link).is_err());
    }

    #[test]
    fn names_that_sockets_cannot_have_are_refused() {
        assert!(make_private(Path::new("relative")).is_err());
        let long = format!("/tmp/{}", "x".repeat(MAX_FOLDER_BYTES));
        assert!(make_private(Path::new(&long)).unwrap_err().to_string().contains("too long"));
    }
}
