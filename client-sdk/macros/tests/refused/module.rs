// The name would be that of every function inside.
#[unjank_macros::traced(name = "shop")]
mod shop {
    fn open() {}
}

#[unjank_macros::traced]
mod cart {
    #[unjank_macros::traced(err)]
    fn total() {}
}

fn main() {}
