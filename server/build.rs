//! Builds again when the embedded web interface changes, which the compiler does not watch.

use std::path::Path;

const WEB: &str = "../dashboards/web";

fn main() {
    // The engine's library takes this function of the program instead of libc's.
    if std::env::var_os("CARGO_CFG_TARGET_OS").is_some_and(|os| os == "linux") {
        println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol=write");
    }
    // Without a built interface, watch the folder around it, so that a later build of the interface is noticed.
    let built = format!("{WEB}/dist");
    let watched = if Path::new(&built).exists() {
        &built
    } else {
        WEB
    };
    println!("cargo::rerun-if-changed={watched}");
}
