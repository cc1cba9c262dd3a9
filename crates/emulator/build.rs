//! Gives the library the name of the CUDA driver, by which programs find the one that is loaded already.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
}
