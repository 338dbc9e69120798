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
    for reported in ["", "<anonymous>", "Object.<anonymous>", "anonymous", "?"] {
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
fn words_for_no_name_do_not_win_over_the_names_of_a_script() {
    let source = "const cart = { pay() {@} }";
    for reported in [
        "anonymous",
        "?",
        "Anonymous function",
        "<anonymous>",
        "Object.<anonymous>",
        "(anonymous)",
        "(anonymous function)",
        "{anonymous}()",
        "UNKNOWN_FUNCTION",
    ] {
        assert_eq!(around(source, reported), ["cart.pay", "cart.pay"]);
    }
    assert_eq!(around(source, "anonymousCart")[1], "anonymousCart");
}

#[test]
fn words_of_metro_for_no_name_do_not_win_over_the_names_of_devices() {
    for (listed, reported, expected) in [
        ("round", "Checkout.payNow", "round"),
        ("<anonymous>", "Checkout.payNow", "Checkout.payNow"),
        ("<anonymous>", "anonymous", "<anonymous>"),
        ("<global>", "Checkout.payNow", "Checkout.payNow"),
        ("<global>", "", ""),
    ] {
        let map = serde_json::json!({
            "version": 3, "debugId": ID, "sources": ["cart.js"], "names": [], "mappings": "AAAA",
            "x_facebook_sources": [[{"names": [listed], "mappings": "AAA"}]],
        });
        let lookup = lookup(map.to_string().as_bytes(), 0);
        let found = lookup.java_script(1, 1, reported).unwrap();
        assert_eq!(found.function, expected, "{listed} {reported}");
    }
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

/// The map of a source by itself, with one place at each character.
fn map_of_each_character(source: &str) -> String {
    // The first place, and then always one column on in both texts.
    let mappings = ["AAAA", &",CAAC".repeat(source.len())].concat();
    serde_json::json!({
        "version": 3, "debugId": ID, "sources": ["cart.js"], "sourcesContent": [source], "names": [], "mappings": mappings,
    })
    .to_string()
}

/// The function around the letter `@`, of a map by itself and of a script with a map without names.
fn around(source: &str, reported: &str) -> [String; 2] {
    let column = u32::try_from(source.find('@').unwrap()).unwrap() + 1;
    let source = source.replace('@', " ");
    let map = map_of_each_character(&source);
    let script = bundle::of(&[("cart.js", &source, &map)]);
    [map.into_bytes(), script].map(|data| {
        let found = lookup(&data, 0).java_script(1, column, reported);
        found.unwrap().function
    })
}

#[test]
fn each_function_has_the_name_that_it_was_given() {
    for (source, name) in [
        ("class Cart { h = () => {@} }", "Cart.h"),
        ("class Cart { #q = async () => {@} }", "Cart.#q"),
        ("class Cart { static s = (x) => {@} }", "Cart.s"),
        ("class Cart { f = function () {@} }", "Cart.f"),
        ("const Cart = class { h = /* */ () => {@} }", "Cart.h"),
        ("class Cart { #pay() {@} }", "Cart.#pay"),
        ("class Cart { static async 1() {@} }", "Cart.<1>"),
        ("class Cart { constructor() {@} }", "new Cart"),
        ("class Cart { static { const pay = () => {@} } }", "pay"),
        ("const pay = function () {@}", "pay"),
        ("let pay; pay ??= (() => {@})", "pay"),
        ("const cart = { pay: async () => {@} }", "cart.pay"),
        ("const cart = {}; cart.pay = function () {@}", "cart.pay"),
        ("const cart = []; cart[0] = function () {@}", "cart[0]"),
        ("const total = items.map(function sum(x) {@})", "sum"),
        ("var Cart = class Cart { pay() {@} }", "Cart.pay"),
        ("var Cart = class _Cart { pay() {@} }", "Cart.pay"),
        ("var Cart = class _Cart { h = () => {@} }", "Cart.h"),
        ("var Cart = class _Cart { constructor() {@} }", "new Cart"),
        ("const Shop = class Cart { pay() {@} }", "Shop.Cart.pay"),
        ("a.Shop = class Cart { pay() {@} }", "a.Shop.Cart.pay"),
        ("a.Cart = class Cart { #pay() {@} }", "a.Cart.#pay"),
        ("a.cart = { pay() {@} }", "a.cart.pay"),
        ("class Cart { Cart() {@} }", "Cart.Cart"),
        ("var Cart = class /* a */ Cart { pay() {@} }", "Cart.pay"),
        ("const Cart = [class {}, class { h = () => {@} }]", "Cart.h"),
    ] {
        assert_eq!(around(source, ""), [name, name], "{source}");
        assert_eq!(around(source, "t.k")[0], name, "{source}");
        // The script has only the names that the device sees, too.
        assert_eq!(around(source, "Cart.add")[1], "Cart.add", "{source}");
    }
}

#[test]
fn functions_do_not_have_the_names_of_variables_and_classes_around_them() {
    for source in [
        "const total = items.map(x => {@})",
        "const t = setTimeout(() => {@})",
        "const res = await load().then(r => {@})",
        "const list = [() => {@}]",
        "const shop = (function () {@})()",
        "const shop = (() => {@})()",
        "const pay = (function () {@}).bind(this)",
        "total = a == function () {@}",
        "const cart = { get sum() { return items.map(x => {@}) } }",
        "class Cart { static {@} }",
        "class Cart { static{items.map(x => {@})} }",
        "class Cart { sums = items.map(x => {@}) }",
        "const Cart = [class {}, [() => {@}]]",
        "class Cart { pay = debounce(() => {@}) }",
        "class Cart { ['pay' + 'Now']() {@} }",
        "const cart = { ['pay' + 'Now']() {@} }",
        "cart['pay' + 'Now'] = function () {@}",
    ] {
        for (reported, expected) in [("", "<anonymous>"), ("Shop.pay", "Shop.pay")] {
            let found = around(source, reported);
            assert_eq!(found, [expected, expected], "{source}");
        }
    }
}

#[test]
fn the_map_of_a_script_names_fields_and_names_that_stay_the_same() {
    let source = "class t { k = () => {@} }";
    let column = u32::try_from(source.find('@').unwrap()).unwrap() + 1;
    let source = source.replace('@', " ");
    // Names at columns 6 and 10.
    for (names, function) in [(["Cart", "pay"], "Cart.pay"), (["t", "k"], "t.k")] {
        let map = serde_json::json!({
            "version": 3, "debugId": ID, "sources": ["cart.js"], "names": names, "mappings": "AAAA,MAAMA,IAAIC,UAAU",
        });
        let data = bundle::of(&[("cart.js", &source, &map.to_string())]);
        let found = lookup(&data, 0).java_script(1, column, "x").unwrap();
        assert_eq!(found.function, function);
    }
}

#[test]
fn the_map_of_a_script_names_a_class_once_and_no_keywords() {
    // As esbuild writes them: names at columns 4, 12 and 14.
    let class = "var s=class t{#a(){@}}";
    // As Terser writes them: names at columns 6 and 9, and the body at column 21.
    let object = "const t={k:async()=>{@}}";
    for (source, names, mappings, reported, expected) in [
        (
            class,
            ["Cart", "_Cart", "#add"],
            "AAAA,IAAMA,QAAUC,EAAEC",
            "t.#a",
            "Cart.#add",
        ),
        (
            object,
            ["api", "async", "x"],
            "AAAA,MAAMA,GAAGC,YAAA",
            "",
            "api.k",
        ),
        (
            object,
            ["api", "load", "x"],
            "AAAA,MAAMA,GAAGC,YAAA",
            "k",
            "api.load",
        ),
    ] {
        let column = u32::try_from(source.find('@').unwrap()).unwrap() + 1;
        let map = serde_json::json!({
            "version": 3, "debugId": ID, "sources": ["cart.js"], "names": names, "mappings": mappings,
        });
        let source = source.replace('@', " ");
        let data = bundle::of(&[("cart.js", &source, &map.to_string())]);
        let found = lookup(&data, 0).java_script(1, column, reported).unwrap();
        assert_eq!(found.function, expected, "{names:?}");
    }
}

#[test]
fn a_class_to_which_esbuild_adds_an_underscore_has_its_own_name() {
    // With static fields: `class Money` becomes `const _Money = class _Money`, minified or not.
    for (script, names, mappings) in [
        (
            "const t=class t{static a(){@}}",
            vec!["_Money", "of"],
            "MAAMA,QAAAA,SAAaC,IAAE",
        ),
        (
            "const _Money=class _Money{static of(){@}}",
            Vec::new(),
            "MAAM,aAAA,cAAa,KAAE",
        ),
    ] {
        let column = u32::try_from(script.find('@').unwrap()).unwrap() + 1;
        let script = script.replace('@', " ");
        for (source, expected) in [
            ("class Money{static of(){}}", "Money.of"),
            ("class _Money{static of(){}}", "_Money.of"),
        ] {
            let map = serde_json::json!({
                "version": 3, "debugId": ID, "sources": ["cart.js"], "sourcesContent": [source], "names": names, "mappings": mappings,
            });
            let data = bundle::of(&[("cart.js", &script, &map.to_string())]);
            let found = lookup(&data, 0).java_script(1, column, "").unwrap();
            assert_eq!(found.function, expected, "{script}");
        }
    }
}

#[test]
fn the_functions_of_long_chains_have_names() {
    let source = format!(
        "function pay() {{ return cart{}{}1{};@ }}",
        ".add(x + 1)".repeat(120),
        " + [".repeat(120),
        "]".repeat(120),
    );
    assert_eq!(around(&source, ""), ["pay", "pay"]);
}

#[test]
fn functions_of_many_classes_and_private_methods_have_names() {
    let classes = "class { h = () => {} }, ".repeat(2_000);
    let source = format!("const Cart = [{classes}class {{ h = () => {{@}} }}]");
    assert_eq!(around(&source, ""), ["Cart.h", "Cart.h"]);
    let methods: String = (0..500).map(|n| format!("#a{n}() {{}} ")).collect();
    let source = format!("class Cart {{ {methods}#pay() {{@}} }}");
    assert_eq!(around(&source, ""), ["Cart.#pay", "Cart.#pay"]);
}

#[test]
fn functions_with_very_long_names_or_comments_in_front_of_them_have_no_name() {
    for (bytes, is_named) in [(1_000, true), (20_000, false)] {
        let long = "a".repeat(bytes);
        for (source, name) in [
            (
                format!("const {long} = {{ pay() {{@}} }}"),
                format!("{long}.pay"),
            ),
            (
                format!("const pay = /* {long} */ () => {{@}}"),
                "pay".to_owned(),
            ),
        ] {
            let expected = match is_named {
                true => name.as_str(),
                false => "<anonymous>",
            };
            assert_eq!(around(&source, ""), [expected, expected], "{bytes}");
        }
    }
}

#[test]
fn names_in_a_map_that_are_very_long_do_not_count() {
    let source = "class t { k = () => { } }";
    let long = "Cart".repeat(2_000);
    let map = serde_json::json!({
        "version": 3, "debugId": ID, "sources": ["cart.js"], "names": [long, "pay"], "mappings": "AAAA,MAAMA,IAAIC,UAAU",
    });
    let data = bundle::of(&[("cart.js", source, &map.to_string())]);
    let found = lookup(&data, 0).java_script(1, 22, "x").unwrap();
    assert_eq!(found.function, "t.pay");
}
