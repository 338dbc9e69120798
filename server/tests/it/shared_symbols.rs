//! Debug information that `dwz` has moved to a file that several programs share. The file may arrive after the program.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::server::Server;
use crate::symbols::{janks, upload_to};

const SOURCE: &str = "
static inline __attribute__((always_inline)) int round_up(int price) {
  volatile int rounded = price * 3;
  return rounded + 1;
}
__attribute__((noinline)) int pay(int price) {
  return round_up(price) + 2;
}
int main(int count, char **arguments) {
  return pay(count);
}
";

/// Runs a program in a folder. Returns its output.
fn run(folder: &Path, program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .ok()?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(printed)
}

#[tokio::test(flavor = "multi_thread")]
#[expect(
    clippy::print_stderr,
    reason = "a skipped test prints that it is skipped"
)]
async fn a_shared_file_that_arrives_later_names_the_functions_that_dwz_moved() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("shop.c"), SOURCE).unwrap();
    let build = ["-g", "-O1", "-Wl,--build-id=sha1", "-o", "shop", "shop.c"];
    run(folder, "cc", &build).unwrap();
    std::fs::copy(folder.join("shop"), folder.join("till")).unwrap();
    if run(folder, "dwz", &["-m", "common.debug", "shop", "till"]).is_none() {
        eprintln!("skipped: dwz is not installed");
        return;
    }
    let symbols = run(folder, "nm", &["shop"]).unwrap();
    let pay = symbols.lines().find(|line| line.ends_with(" pay")).unwrap();
    let pay = u64::from_str_radix(pay.split(' ').next().unwrap(), 16).unwrap();
    let [program, shared] =
        ["shop", "common.debug"].map(|name| std::fs::read(folder.join(name)).unwrap());
    let build_id = unjank_symbols::inspect(&program).unwrap()[0]
        .ids
        .last()
        .unwrap()
        .clone();

    let server = Server::start().await;
    server.ready().await;
    let token = server
        .token("editor --project default --only-symbols")
        .await;
    let to = (token.as_str(), "default");
    let stack = json!([{"module": "shop", "build_id": build_id, "offset": pay}]);
    server.send(&janks(&stack)).await;
    let functions =
        "SELECT arrayStringConcat(`frames.function`, ' < ') FROM stacks_symbolicated FINAL";
    assert_eq!(upload_to(&server, to, &program).await["state"], "ok");
    server.answers(functions, "pay").await;
    assert_eq!(upload_to(&server, to, &shared).await["state"], "ok");
    server.answers(functions, "round_up < pay").await;
}
