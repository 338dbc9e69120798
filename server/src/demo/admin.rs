//! Somebody who can look at the demo at once.

use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::control::password;
use crate::store::control::{Actor, Control, ControlError, Hidden, NewUser};

pub const EMAIL: &str = "demo@example.com";

/// Makes the admin of the demo. Answers the password, which nothing else knows; none when somebody of that address is there.
///
/// # Errors
/// When the control database does not take it.
pub async fn make_admin(control: &dyn Control, now: i64) -> anyhow::Result<Option<String>> {
    let mut bytes = [0_u8; 15];
    rand::fill(&mut bytes).map_err(|_| anyhow::anyhow!("the system gives no random numbers"))?;
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
