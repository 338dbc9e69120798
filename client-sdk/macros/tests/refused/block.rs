struct Cart;

#[unjank_macros::traced(init)]
impl Cart {
    fn new() -> Self {
        Self
    }
}

struct Shop;

#[unjank_macros::traced(name = "shop")]
impl Shop {
    fn new() -> Self {
        Self
    }
}

fn main() {}
