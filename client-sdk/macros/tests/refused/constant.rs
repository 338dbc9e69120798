#[unjank_macros::traced]
const fn answer() -> u8 {
    42
}

fn main() {
    answer();
}
