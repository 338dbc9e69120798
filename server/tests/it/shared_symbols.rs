//! Debug information that `dwz` has moved to a file that several programs share. The file may arrive after the program.

use serde_json::json;

use crate::server::Server;
use crate::symbols::{janks, upload_to};

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_file_that_arrives_later_names_the_functions_that_dwz_moved() {
    let program = include_bytes!("../../symbols/tests/dwz/shop").as_slice();
    let shared = include_bytes!("../../symbols/tests/dwz/common.debug").as_slice();
    let pay = 0x10c;
    let build_id = unjank_symbols::inspect(program).unwrap()[0]
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
    assert_eq!(upload_to(&server, to, program).await["state"], "ok");
    server.answers(functions, "pay").await;
    assert_eq!(upload_to(&server, to, shared).await["state"], "ok");
    server.answers(functions, "round_up < pay").await;
}
