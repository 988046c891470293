//! Entry point of `sluice-noded`.
fn main() {
    let mut args = std::env::args_os().skip(1);
    if args.next().as_deref() == Some(std::ffi::OsStr::new("supervise"))
        && let Some(dir) = args.next()
        && let Err(e) = sluice_noded::supervise::run(std::path::Path::new(&dir))
    {
        eprintln!("sluice-noded: {e}");
        std::process::exit(1);
    }
}
