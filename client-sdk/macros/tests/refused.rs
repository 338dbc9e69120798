//! What cannot be traced is refused with what to do instead.

#[test]
fn what_is_wrong_is_told_with_what_to_do() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
