//! The admin account of the demo.

use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use unjank_database::{Actor, Control, ControlError, Hidden, NewUser};
use unjank_foundation::clock::UnixTime;

use crate::access::password;

pub const EMAIL: &str = "demo@example.com";

/// Creates the demo's admin. Returns the generated password, which is stored only as a hash, or `None` if the user exists.
///
/// # Errors
/// Returns an error if the control database fails.
pub async fn make_admin(control: &Control, now: UnixTime) -> anyhow::Result<Option<String>> {
    let mut bytes = [0_u8; 15];
    rand::fill(&mut bytes)
        .map_err(|_| anyhow::anyhow!("the system's random number generator failed"))?;
    let text = URL_SAFE_NO_PAD.encode(bytes);
    let hashed = {
        let text = text.clone();
        tokio::task::spawn_blocking(move || password::hash(&text)).await??
    };
    let new = NewUser {
        email: EMAIL.to_owned(),
        name: "Demo".to_owned(),
        password_hash: Some(Hidden(hashed)),
        is_admin: true,
    };
    match control
        .create_user(new, &Actor::cli("unjank demo"), now)
        .await
    {
        Ok(_) => Ok(Some(text)),
        Err(ControlError::AlreadyExists) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
