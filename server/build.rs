//! Builds again when what is embedded changes, which the compiler does not watch: migrations, of which `sqlx::migrate!` embeds whole
//! folders, and the web interface.

use std::path::Path;

const WEB: &str = "../dashboards/web";

fn main() {
    println!("cargo::rerun-if-changed=../migrations/postgres");
    println!("cargo::rerun-if-changed=../migrations/sqlite");
    // Where nobody built it, the folder around it tells when somebody did.
    let built = format!("{WEB}/dist");
    let watched = if Path::new(&built).exists() {
        &built
    } else {
        WEB
    };
    println!("cargo::rerun-if-changed={watched}");
}
