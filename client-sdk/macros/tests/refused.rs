//! Code that cannot be traced is rejected with advice on what to do instead.

#[test]
fn errors_say_what_is_wrong_and_what_to_do() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
