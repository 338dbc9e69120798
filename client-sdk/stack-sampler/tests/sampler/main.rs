//! Real threads that are blocked, busy, ending or in unusual states, and what a sampler captures of them.
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![expect(
    clippy::unwrap_used,
    reason = "a failure in shared code fails the test that uses it"
)]

mod blocked;
mod busy;
mod modules;
mod places;
mod refused;
#[cfg(target_arch = "x86_64")]
mod undisturbed;
mod watched;
