//! Exports the program's `write`, so that the engine's library uses it (see `src/failed_writes.rs`).

fn main() {
    if std::env::var_os("CARGO_CFG_TARGET_OS").is_some_and(|os| os == "linux") {
        println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol=write");
    }
}
