//! The function of a script's frame is the one around it, or the one that the device sent.

use super::{ID, SCRIPT, bundle, lookup};

/// The map of a script whose line 1 is line 1 of `source`, with an identifier at every tenth column.
fn map(source: Option<&str>, file: &str) -> String {
    let places: Vec<&str> = [vec!["AAAAA"], vec!["UAAUC"; 12]].concat();
    let names: Vec<String> = (0..13).map(|name| format!("identifier{name}")).collect();
    serde_json::json!({
        "version": 3, "debugId": ID, "sources": [file], "sourcesContent": [source],
        "names": names, "mappings": places.join(","),
    })
    .to_string()
}

fn functions(map: &str, reported: &str) -> Vec<String> {
    let lookup = lookup(map.as_bytes(), 0);
    let columns = (1..=121).step_by(10);
    columns
        .map(|column| lookup.java_script(1, column, reported).unwrap().function)
        .collect()
}

#[test]
fn identifiers_at_a_position_are_not_functions() {
    for (source, file) in [
        (None, "cart.js"),
        (
            Some("export function pay(price: number): number { return price }"),
            "cart.ts",
        ),
        (Some("function pay( { this is damaged"), "cart.js"),
    ] {
        let found = functions(&map(source, file), "Checkout.payNow");
        assert!(
            found.iter().all(|name| name == "Checkout.payNow"),
            "{found:?}"
        );
    }
}

#[test]
fn the_sources_in_a_map_tell_the_enclosing_functions() {
    // Each part has 20 letters.
    let source = [
        "class Cart {        ",
        "  pay(price) {      ",
        "    const round = x ",
        "=> x * 3 + price  ;;",
        "} } /*          */  ",
    ];
    let found = functions(&map(Some(&source.concat()), "cart.js"), "t.a");
    assert_eq!(found[3], "Cart.pay", "{found:?}");
    assert_eq!(found[6], "round", "{found:?}");
    // Outside of all functions.
    assert_eq!(found[10], "t.a", "{found:?}");
}

#[test]
fn names_that_devices_send_are_kept_for_functions_without_a_name() {
    let source = "run(function () { return identifier + identifier + identifier + 1 })";
    let named = ["Checkout.payNow", "pay", "new Cart"];
    for reported in named {
        assert_eq!(functions(&map(Some(source), "a.js"), reported)[3], reported);
    }
    for reported in ["", "<anonymous>", "Object.<anonymous>"] {
        assert_eq!(
            functions(&map(Some(source), "a.js"), reported)[3],
            "<anonymous>"
        );
    }
    let script = bundle::of(&[("a.js", source, &map(None, "a.ts"))]);
    let found = lookup(&script, 0)
        .java_script(1, 31, "Checkout.payNow")
        .unwrap();
    assert_eq!(found.function, "Checkout.payNow");
}

#[test]
fn the_names_of_a_script_win_over_those_of_devices() {
    let data = bundle::of(&[("shop.min.js", SCRIPT, &super::source_map())]);
    let found = lookup(&data, 0).java_script(1, 24, "a").unwrap();
    assert_eq!(found.function, "pay");
}

#[test]
fn sources_with_brackets_without_end_have_no_functions() {
    let source = format!("function pay() {{ return {}", "(".repeat(50_000));
    let found = functions(&map(Some(&source), "a.js"), "pay");
    assert!(found.iter().all(|name| name == "pay"), "{found:?}");
}
