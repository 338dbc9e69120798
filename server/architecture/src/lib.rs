//! The rules of the project that a machine can check are in `tests/architecture`.
