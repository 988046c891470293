//! Compiles the .proto files with a pure-Rust compiler, so that a fresh machine needs no `protoc`.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = [
        "proto/common.proto",
        "proto/controller.proto",
        "proto/node.proto",
        "proto/disk.proto",
        "proto/accounting.proto",
    ];
    for file in files {
        println!("cargo:rerun-if-changed={file}");
    }
    let descriptors = protox::compile(files, ["proto"])?;
    // Large parts that most records lack: a list of 100,000 brief records must not carry room for them.
    let mut build = tonic_prost_build::configure().bytes(".");
    for field in ["spec", "allocation", "outcome", "waiting_on", "usage"] {
        build = build.boxed(format!(".sluice.v1.JobRecord.{field}"));
    }
    build.compile_fds(descriptors)?;
    Ok(())
}
