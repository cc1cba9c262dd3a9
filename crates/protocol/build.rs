//! Generates the messages, the server and the client of the inference service from its description.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(["grpc_service.proto"], ["proto"])?;
    tonic_prost_build::configure()
        // Connecting is left to whoever has a transport.
        .build_transport(false)
        // Tensors stay slices of the message that they came in.
        .bytes(".")
        .compile_fds(descriptors)?;
    Ok(())
}
