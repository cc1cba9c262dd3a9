use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use super::*;

/// A folder that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = env::temp_dir().join(format!("weft-library-{test}-{}", process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Makes an empty file and the folders above it.
    fn file(&self, path: &str) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        path
    }

    fn environment(&self) -> Environment {
        Environment { root: self.0.join("root"), ..Environment::default() }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn joined(paths: &[&Path]) -> std::ffi::OsString {
    env::join_paths(paths).unwrap()
}

#[test]
fn the_users_folders_come_first_with_their_library_folders_in_the_order_given() {
    let folder = Folder::new("chosen");
    let expected = [
        folder.file("first/libnvrtc.so.13"),
        folder.file("first/lib64/libnvrtc.so.13"),
        folder.file("second/lib/libnvrtc.so.12"),
        folder.file("second/targets/x86_64-linux/lib/libnvrtc.so.12"),
        folder.file("packages/nvidia/cu13/lib/libnvrtc.so.13"),
    ];
    let chosen = ["first", "second", "missing", "packages/nvidia"].map(|name| folder.0.join(name));
    let chosen: Vec<&Path> = chosen.iter().map(PathBuf::as_path).collect();
    let environment = Environment { cuda_path: Some(joined(&chosen)), ..folder.environment() };
    let search = SearchPath::of(&environment);
    assert_eq!(search.chosen_files(CudaLibrary::Nvrtc), expected);
    assert!(search.known_files(CudaLibrary::Nvrtc).is_empty());
}

#[test]
fn installed_folders_and_python_packages_are_known() {
    let folder = Folder::new("known");
    let expected = [
        folder.file("root/usr/local/cuda-13.0/lib64/libcublasLt.so.13"),
        folder.file("root/usr/local/cuda-12.10/targets/x86_64-linux/lib/libcublasLt.so.12"),
        folder.file("root/usr/local/cuda-12.9/lib64/libcublasLt.so.12"),
        folder.file("root/usr/local/nvidia/lib64/libcublasLt.so"),
        folder.file("venv/lib/python3.11/site-packages/nvidia/cublas/lib/libcublasLt.so.12"),
        folder.file("conda/lib/python3.12/site-packages/nvidia/cu13/lib/libcublasLt.so.13"),
        folder.file("python/lib/python3.10/dist-packages/nvidia/cublas/lib/libcublasLt.so.12"),
        folder.file("python/local/lib/python3.10/dist-packages/nvidia/cu13/lib/libcublasLt.so.13"),
        folder.file("home/.local/lib/python3.10/site-packages/nvidia/cu13/lib/libcublasLt.so.13"),
    ];
    let python = folder.file("python/bin/python3");
    let environment = Environment {
        virtual_env: Some(folder.0.join("venv").into()),
        conda_prefix: Some(folder.0.join("conda").into()),
        path: Some(joined(&[&folder.0.join("nothing"), python.parent().unwrap()])),
        home: Some(folder.0.join("home").into()),
        ..folder.environment()
    };
    assert_eq!(SearchPath::of(&environment).known_files(CudaLibrary::CublasLt), expected);
}

#[test]
fn the_packages_of_a_linked_interpreter_are_found_beside_the_link_and_beside_the_interpreter() {
    let folder = Folder::new("link");
    let interpreter = folder.file("system/bin/python3.11");
    let beside_link =
        folder.file("venv/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9");
    let beside_interpreter =
        folder.file("system/lib/python3.11/dist-packages/nvidia/cudnn/lib/libcudnn.so.9");
    let bin = folder.0.join("venv/bin");
    fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink(&interpreter, bin.join("python3")).unwrap();
    let environment = Environment { path: Some(joined(&[&bin])), ..folder.environment() };
    let found = SearchPath::of(&environment).known_files(CudaLibrary::Cudnn);
    assert_eq!(found[0], beside_link);
    assert_eq!(found[1].canonicalize().unwrap(), beside_interpreter.canonicalize().unwrap());
}

#[test]
fn of_one_folder_the_newest_version_is_first_and_other_libraries_are_not_taken() {
    let folder = Folder::new("versions");
    for name in ["libnvrtc.alt.so.13", "libnvrtc-builtins.so.13.0", "libnvrtc.so.13.bak"] {
        folder.file(&format!("lib/{name}"));
    }
    let expected = ["libnvrtc.so.13", "libnvrtc.so.12.10", "libnvrtc.so.12.9", "libnvrtc.so"]
        .map(|name| folder.file(&format!("lib/{name}")));
    let environment = Environment { cuda_path: Some(joined(&[&folder.0])), ..folder.environment() };
    assert_eq!(SearchPath::of(&environment).chosen_files(CudaLibrary::Nvrtc), expected);
}

#[test]
fn headers_beside_the_compiler_come_before_all_others() {
    let folder = Folder::new("headers");
    let compiler = folder.file("root/usr/local/cuda-12.9/lib64/libnvrtc.so.12");
    folder.file("root/usr/local/cuda-12.9/include/cuda_fp16.h");
    folder.file("root/usr/local/cuda-13.0/include/cuda_fp16.h");
    let search = SearchPath::of(&folder.environment());
    let of = |compiler| search.include_folder(compiler).unwrap();
    assert!(of(Some(&*compiler)).ends_with("cuda-12.9/include"));
    assert!(of(None).ends_with("cuda-13.0/include"));

    let packaged = folder.file("packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
    folder.file("packages/nvidia/cuda_nvrtc/include/nvrtc.h");
    folder.file("packages/nvidia/cuda_runtime/include/cuda_fp16.h");
    assert!(of(Some(&*packaged)).ends_with("nvidia/cuda_runtime/include"));
}

#[test]
fn absent_headers_are_named_with_the_folders_that_lack_them() {
    let folder = Folder::new("no-headers");
    folder.file("cuda/include/cuda.h");
    let environment =
        Environment { cuda_path: Some(joined(&[&folder.0.join("cuda")])), ..folder.environment() };
    let absence = SearchPath::of(&environment).include_folder(None).unwrap_err();
    let message = absence.to_string();
    assert!(message.contains("cuda_fp16.h") && message.contains("cuda/include"), "{message}");
}

#[test]
fn a_file_that_is_no_library_is_reported_in_the_loaders_words() {
    let folder = Folder::new("broken");
    let broken = folder.file("lib/libcudnn.so.9");
    let environment = Environment { cuda_path: Some(joined(&[&folder.0])), ..folder.environment() };
    let libraries = Libraries::new(SearchPath::of(&environment));
    // A machine may have the real library on the loader's path, which then is found.
    let Err(absence) = libraries.open(CudaLibrary::Cudnn) else { return };
    let message = absence.to_string();
    assert!(message.contains(&format!("{}: file too short", broken.display())), "{message}");
    assert!(message.contains("libcudnn.so.9, libcudnn.so"), "{message}");
    assert!(message.contains("WEFT_CUDA_PATH"), "{message}");
}
