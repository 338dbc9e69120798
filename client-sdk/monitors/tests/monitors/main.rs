//! The machines through their public surface: worked examples, and comparisons with simple models.

mod frames;
