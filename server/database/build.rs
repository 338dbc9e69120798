//! Builds again when migrations change: `sqlx::migrate!` embeds whole folders, which the compiler does not watch.

fn main() {
    println!("cargo::rerun-if-changed=../../migrations/postgres");
    println!("cargo::rerun-if-changed=../../migrations/sqlite");
}
