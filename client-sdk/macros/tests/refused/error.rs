#[unjank_macros::traced(err)]
fn nothing() {}

fn main() {}
