#[unjank_macros::traced]
struct Cart;

#[unjank_macros::traced]
trait Pay {
    #[unjank_macros::traced]
    fn pay(&self);
}

fn main() {}
