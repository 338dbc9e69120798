//! Every function is in a line of its own, so that its line tells which function it is in any build.
#![allow(dead_code)]
use std::hint::black_box;

pub mod dep {
    use std::hint::black_box;
    pub trait Shape {
        fn area(&self) -> u64;
        #[inline(never)] fn twice(&self) -> u64 { black_box(self.area()) * 2 }
        #[inline(never)] fn times<T: Into<u64> + Copy>(&self, by: T) -> u64 where Self: Sized { black_box(self.area()) * by.into() }
        #[inline(never)] fn named() -> usize where Self: Sized { black_box(std::mem::size_of::<Self>()) }
    }
    pub struct Bag(pub u64);
    pub struct Held<T>(pub T);
    impl<T> Held<T> {
        #[inline(never)] pub fn size(&self) -> usize { black_box(std::mem::size_of::<T>()) }
        #[inline(never)] pub fn with<U>(&self, other: &U) -> usize { black_box(std::mem::size_of_val(other)) }
    }
}

mod shapes {
    use super::dep::{Bag, Held, Shape};
    use std::hint::black_box;
    pub struct Handler<F>(pub F);
    pub struct Pair<K, F>(pub K, pub F);
    impl Shape for Bag {
        #[inline(never)] fn area(&self) -> u64 { black_box(self.0) }
    }
    impl Shape for u32 {
        #[inline(never)] fn area(&self) -> u64 { black_box(u64::from(*self) + 1) }
    }
    impl Shape for (u8, u16) {
        #[inline(never)] fn area(&self) -> u64 { black_box(u64::from(self.0) + 2) }
    }
    impl Shape for fn(u8) -> u8 {
        #[inline(never)] fn area(&self) -> u64 { black_box(u64::from(self(1)) + 3) }
    }
    impl<T> Shape for [T; 3] {
        #[inline(never)] fn area(&self) -> u64 { black_box(self.len() as u64 + 4) }
    }
    impl Shape for &str {
        #[inline(never)] fn area(&self) -> u64 { black_box(self.len() as u64 + 5) }
    }
    impl<T> Shape for *const T {
        #[inline(never)] fn area(&self) -> u64 { black_box(self.is_null() as u64 + 6) }
    }
    impl Shape for Box<dyn Fn(u8) -> u8> {
        #[inline(never)] fn area(&self) -> u64 { black_box(u64::from(self(2)) + 7) }
    }
    impl<T: Copy + Into<u64>> Shape for Held<T> {
        #[inline(never)] fn area(&self) -> u64 { black_box(self.0.into() + 8) }
    }
    impl<T> Shape for Vec<T> {
        #[inline(never)] fn area(&self) -> u64 { black_box(self.len() as u64 + 9) }
    }
    impl dyn Shape {
        #[inline(never)] pub fn dynamic(&self) -> u64 { black_box(self.area() + 10) }
    }
    impl Bag {
        #[inline(never)] pub fn far(&self) -> u64 { black_box(self.0 + 11) }
    }
    impl<T> Held<Vec<T>> {
        #[inline(never)] pub fn count(&self) -> usize { black_box(self.0.len() + 12) }
    }
    impl<F: Fn(u8) -> u8> Handler<F> {
        #[inline(never)] pub fn function(&self) -> u8 { black_box((self.0)(3)) }
    }
    impl Handler<(u8, u16)> {
        #[inline(never)] pub fn tuple(&self) -> u8 { black_box(self.0.0 + 13) }
    }
    impl Handler<fn(u8) -> u16> {
        #[inline(never)] pub fn pointer(&self) -> u16 { black_box((self.0)(3) + 14) }
    }
    impl Pair<u32, fn(u8) -> u8> {
        #[inline(never)] pub fn emit(&self) -> u32 { black_box(self.0 + u32::from((self.1)(4)) + 17) }
    }
    impl Pair<u8, for<'a> fn(&'a u8) -> &'a u8> {
        #[inline(never)] pub fn borrowed(&self) -> u8 { black_box(*(self.1)(&self.0) + 18) }
    }
    impl Handler<&'static [u8]> {
        #[inline(never)] pub fn slice(&self) -> u8 { black_box(self.0[0] + 15) }
    }
}

#[inline(never)] fn generic<T: Copy>(x: T) -> T { black_box(x) }
#[inline(never)] fn constant<const N: usize>() -> usize { black_box(N + 16) }
#[inline(never)] fn letter<const C: char>() -> u64 { black_box(u64::from(C) + 19) }
fn block() -> fn(u64) -> u64 {
    const {
        #[inline(never)] fn inside(x: u64) -> u64 { black_box(x + 20) }
        inside
    }
}
#[inline(never)] fn called<F: Fn(u64) -> u64>(f: F) -> u64 { black_box(f(black_box(2))) }
#[inline(never)] fn add(x: u8) -> u8 { black_box(x + 1) }
#[inline(never)] fn same<'a>(x: &'a u8) -> &'a u8 { black_box(x) }
#[inline(never)] fn add_wide(x: u8) -> u16 { black_box(u16::from(x) + 1) }

fn main() {
    use dep::{Bag, Held, Shape};
    use shapes::{Handler, Pair};
    let bag = Bag(3);
    println!("{} {} {}", bag.twice() + 5_u32.twice() + (1_u8, 2_u16).twice(), [1_u8, 2, 3].twice(), ["a"; 3].twice());
    println!("{} {} {}", "abc".twice(), (&raw const bag).twice(), Held(3_u8).twice() + Held(4_u32).twice() + vec![1].twice());
    println!("{} {}", (add as fn(u8) -> u8).twice(), (Box::new(|x: u8| x + 1) as Box<dyn Fn(u8) -> u8>).twice());
    println!("{} {} {}", bag.times(3_u8), 5_u32.times(4_u32), Bag::named() + <u32 as Shape>::named());
    println!("{} {} {}", bag.far(), Held(vec![1]).count(), Held(vec!["a"]).size() + Held(1_u8).size() + Held(1).with(&"a"));
    println!("{} {}", Handler(add as fn(u8) -> u8).function(), Handler((1_u8, 2_u16)).tuple());
    println!("{} {}", Handler(add_wide as fn(u8) -> u16).pointer(), Handler(&[1_u8][..]).slice());
    println!("{} {}", Handler(|x: u8| x + 2).function(), u64::from(generic(3_u8)) + generic(4_u64));
    println!("{} {}", constant::<3>() + constant::<4>(), called(|x| x + 1) + called(|x| x * 3));
    println!("{} {}", Pair(1_u32, add as fn(u8) -> u8).emit(), Pair(1_u8, same as for<'a> fn(&'a u8) -> &'a u8).borrowed());
    println!("{} {} {}", letter::<'<'>(), letter::<'>'>(), black_box(block())(1));
    let shape: Box<dyn Shape> = Box::new(bag);
    println!("{}", shape.dynamic());
}
