//! Lets the engine's library find the program's `write`, see `src/failed_writes.rs`.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol=write");
    }
}
