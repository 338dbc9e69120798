//! The rules of a project: their text, the compiled rules, and their identity.

use unjank_foundation::fingerprint::fingerprint;

use super::rules::Rules;
use super::rules_file::RulesError;

/// The version of the classifier. Increment it in every release that classifies some stack differently under the same
/// rules; the server then reclassifies stored stacks.
const CLASSIFIER: u32 = 3;

/// The identity of the rules that produced a class.
///
/// The revision alone is not enough. Revision 0 means the server's fallback rules, which can vary; and rules that
/// include the built-in ones change when a release changes those.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RulesId {
    /// The revision of the project's saved rules, from 1; 0 if none are saved and the server's own rules apply. Of two
    /// classes of a stack, the one with the higher revision wins.
    pub revision: u32,
    /// A hash of everything that can affect the result: the rules of the file, the built-in rules if the file includes
    /// them, and the version of the classifier. Comments and layout do not count, so better wording in a rule file
    /// reclassifies nothing.
    pub hash: u64,
}

/// Rules with their identity. As expensive to build as [`Rules`]; share it in an `Arc`.
#[derive(Debug)]
pub struct RuleSet {
    id: RulesId,
    text: String,
    rules: Rules,
}

impl RuleSet {
    /// # Errors
    /// If the text is not a valid rule file.
    pub fn parse(revision: u32, text: impl Into<String>) -> Result<Self, RulesError> {
        let text = text.into();
        let rules = Rules::parse(&text)?;
        Ok(Self::new(revision, text, rules))
    }

    /// Returns the rules that ship with the program.
    #[must_use]
    pub fn built_in() -> Self {
        Self::new(0, Rules::built_in_toml().to_owned(), Rules::built_in())
    }

    fn new(revision: u32, text: String, rules: Rules) -> Self {
        let built_in = if rules.has_built_in() {
            Rules::built_in_toml()
        } else {
            ""
        };
        let hash = fingerprint(&[
            &CLASSIFIER.to_le_bytes(),
            &without_comments(&text),
            &without_comments(built_in),
        ]);
        let id = RulesId { revision, hash };
        Self { id, text, rules }
    }

    #[must_use]
    pub fn id(&self) -> RulesId {
        self.id
    }

    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the text of the rule file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The content of a rule file in a form that is the same for every layout: JSON with sorted keys.
fn without_comments(text: &str) -> Vec<u8> {
    toml::from_str::<toml::Table>(text)
        .ok()
        .and_then(|table| serde_json::to_vec(&table).ok())
        .unwrap_or_else(|| text.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rules_have_equal_hashes_and_different_rules_do_not() {
        let own = "[[rule]]\nmatch = \"com.example.\"\nmeans = \"in_app\"\n";
        let with_built_in = format!("built_in = true\n{own}");
        let hash = |text: &str| RuleSet::parse(3, text).unwrap().id().hash;
        assert_eq!(hash(own), RuleSet::parse(4, own).unwrap().id().hash);
        assert_ne!(hash(own), hash(&with_built_in));
        let same = "# Ours.\n[[rule]]\nmeans = 'in_app' # always\nmatch = \"com.example.\"";
        assert_eq!(hash(own), hash(same));
        assert_ne!(hash(own), hash(&own.replace("example", "other")));
        assert_ne!(hash(own), RuleSet::built_in().id().hash);
        assert_eq!(RuleSet::built_in().id().revision, 0);
    }
}
