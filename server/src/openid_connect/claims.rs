//! The provider's claims about a person, from the ID token or the user info. Pure.

use openidconnect::AdditionalClaims;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use unjank_database::ProviderEmail;

/// Claims that OpenID Connect does not define, such as `groups`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct OtherClaims(Map<String, Value>);

impl AdditionalClaims for OtherClaims {}

/// The maximum length of a name, in characters.
const LONGEST_NAME: usize = 200;

/// All claims of one source.
pub(super) struct Claims(Map<String, Value>);

impl Claims {
    pub(super) fn new(claims: &impl Serialize) -> Self {
        match serde_json::to_value(claims) {
            Ok(Value::Object(claims)) => Self(claims),
            _ => Self(Map::new()),
        }
    }

    /// Whether claims are missing that the user info may provide. `roles_claim` is empty if roles are managed in unjank.
    pub(super) fn lacks(&self, roles_claim: &str) -> bool {
        let needed = ["email", "email_verified", "name", roles_claim];
        let mut needed = needed.into_iter().filter(|name| !name.is_empty());
        needed.any(|name| !self.0.contains_key(name))
    }

    /// Adds claims that the ID token lacks. `email` and `email_verified` must come from the same source.
    pub(super) fn or(mut self, user_info: Self) -> Self {
        if !self.0.contains_key("email_verified") && user_info.0.contains_key("email") {
            self.0.remove("email");
        }
        let mut others = user_info.0;
        if self.0.contains_key("email") {
            others.remove("email_verified");
        }
        for (name, value) in others {
            self.0.entry(name).or_insert(value);
        }
        self
    }

    pub(super) fn email(&self) -> ProviderEmail {
        match (self.text("email"), self.0.get("email_verified")) {
            (None, _) => ProviderEmail::Missing,
            (Some(email), Some(Value::Bool(true))) => ProviderEmail::Verified(email.to_owned()),
            _ => ProviderEmail::Unverified,
        }
    }

    /// Returns a display name.
    pub(super) fn name(&self) -> String {
        let mut names = ["name", "preferred_username", "email"].into_iter();
        let name = names.find_map(|claim| self.text(claim));
        let plain = name.unwrap_or_default().chars();
        let plain = plain.filter(|char| !char.is_control());
        let plain: String = plain.take(LONGEST_NAME).collect();
        match plain.trim() {
            "" => "unnamed".to_owned(),
            name => name.to_owned(),
        }
    }

    /// Returns the values of a claim that is a list of texts or a single text.
    pub(super) fn values(&self, claim: &str) -> Vec<String> {
        match self.0.get(claim) {
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Array(all)) => {
                let texts = all.iter().filter_map(Value::as_str);
                texts.map(str::to_owned).collect()
            }
            _ => Vec::new(),
        }
    }

    fn text(&self, claim: &str) -> Option<&str> {
        let text = self.0.get(claim)?.as_str()?;
        (!text.trim().is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_address_is_verified_only_by_its_own_source() {
        let email = |token: Value, info: Value| Claims::new(&token).or(Claims::new(&info)).email();
        let ann = || ProviderEmail::Verified("ann@example.com".to_owned());
        let verified = json!({"email": "ann@example.com", "email_verified": true});
        assert_eq!(email(verified.clone(), json!({})), ann());
        assert_eq!(email(json!({}), verified.clone()), ann());
        assert_eq!(email(json!({"email": "boss@example.com"}), verified), ann());
        for (token, info) in [
            (
                json!({"email": "boss@example.com"}),
                json!({"email_verified": true}),
            ),
            (
                json!({"email": "boss@example.com", "email_verified": false}),
                json!({"email": "ann@example.com", "email_verified": true}),
            ),
            (
                json!({"email": "boss@example.com", "email_verified": "true"}),
                json!({}),
            ),
        ] {
            assert_eq!(email(token, info), ProviderEmail::Unverified);
        }
        let none = json!({"email_verified": true});
        assert_eq!(email(none, json!({})), ProviderEmail::Missing);
    }

    #[test]
    fn roles_are_a_list_of_texts_or_a_single_text() {
        let values = |claims: Value| Claims::new(&claims).values("groups");
        assert_eq!(values(json!({"groups": ["a", 1, "b"]})), ["a", "b"]);
        assert_eq!(values(json!({"groups": "a b"})), ["a b"]);
        for none in [
            json!({}),
            json!({"groups": null}),
            json!({"groups": {"a": 1}}),
        ] {
            assert!(values(none).is_empty());
        }
        // An empty list in the ID token is not a missing claim.
        let token = Claims::new(&json!({"groups": []}));
        let both = token.or(Claims::new(&json!({"groups": ["a"]})));
        assert!(both.values("groups").is_empty());
    }

    #[test]
    fn a_name_is_always_valid() {
        let name = |claims: Value| Claims::new(&claims).name();
        assert_eq!(name(json!({"name": " Ann\n "})), "Ann");
        assert_eq!(
            name(json!({"name": "", "preferred_username": "ann"})),
            "ann"
        );
        assert_eq!(name(json!({"name": "a".repeat(300)})).len(), LONGEST_NAME);
        assert_eq!(name(json!({})), "unnamed");
    }
}
