//! Compiles the .proto files with a pure-Rust compiler, so that a fresh machine needs no `protoc`.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = ["proto/common.proto", "proto/controller.proto", "proto/node.proto", "proto/disk.proto"];
    for file in files {
        println!("cargo:rerun-if-changed={file}");
    }
    let descriptors = protox::compile(files, ["proto"])?;
    tonic_prost_build::configure().bytes(".").compile_fds(descriptors)?;
    Ok(())
}
