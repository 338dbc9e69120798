//! Shapes of JSON values: the vocabulary of [`super::schema`].

/// The allowed shape of a value.
#[derive(Debug)]
pub(super) enum Shape {
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Integer { min: u64, max: u64 },
    /// A number from 0 to 1.
    Share,
    /// Non-empty text.
    Text,
    /// A regular expression.
    Regex,
    /// One of these names.
    OneOf(&'static [&'static str]),
    /// A list of values of one shape.
    List {
        of: &'static Self,
        at_least: usize,
        at_most: usize,
    },
    /// An object with arbitrary keys.
    Map { of: &'static Self, at_most: usize },
    /// An object with known keys.
    Object(&'static [Key]),
    /// Any JSON value.
    Anything,
}

/// A known key of an object.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    /// Whether the key must be present because it has no default.
    pub(super) required: bool,
}

pub(super) const fn key(name: &'static str, shape: Shape) -> Key {
    Key {
        name,
        shape,
        required: false,
    }
}

pub(super) const fn required(name: &'static str, shape: Shape) -> Key {
    Key {
        name,
        shape,
        required: true,
    }
}

pub(super) const fn integer(min: u64, max: u64) -> Shape {
    Shape::Integer { min, max }
}

pub(super) const fn list(of: &'static Shape, at_most: usize) -> Shape {
    Shape::List {
        of,
        at_least: 0,
        at_most,
    }
}

pub(super) const fn some(of: &'static Shape, at_most: usize) -> Shape {
    Shape::List {
        of,
        at_least: 1,
        at_most,
    }
}
