#[unjank_macros::traced(label = "x")]
fn one() {}

#[unjank_macros::traced(name = NAME)]
fn two() {}

#[unjank_macros::traced(tag = "")]
fn three() {}

#[unjank_macros::traced(skip, err)]
fn four() {}

fn main() {}
