//! Code that cannot be traced is rejected with advice on what to do instead.

#[test]
fn errors_name_the_mistake_and_the_remedy() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
