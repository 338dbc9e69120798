//! Real threads that are blocked, busy, ending or in odd places, and what a sampler sees of them.
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![expect(
    clippy::unwrap_used,
    reason = "what the tests share fails the test that uses it"
)]

mod blocked;
mod busy;
mod modules;
mod places;
mod refused;
mod watched;
