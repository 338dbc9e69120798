//! The rules that hold in a project: their text, compiled, and what tells them from all others.

use super::rules::Rules;
use super::rules_file::RulesError;
use crate::fingerprint::fingerprint;

/// Counts up with every release that makes another class of the same stack by the same rules: stored stacks are
/// classified anew then.
const CLASSIFIER: u32 = 1;

/// Which rules made a class.
///
/// The revision alone does not say it: revision 0 stands for whatever the server falls back to, and rules that have the
/// built-in ones follow theirs change when a release brings other built-in rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RulesId {
    /// The revision the project's rules were saved as, from 1; 0: none were saved, the server's own hold. Of two classes
    /// of a stack, the one of the higher revision counts.
    pub revision: u32,
    /// Everything that decides: the text, the built-in rules when they follow it, and the classifier itself.
    pub hash: u64,
}

/// Rules with their identity. Costs as much as [`Rules`] to build; share it in an `Arc`.
#[derive(Debug)]
pub struct RuleSet {
    id: RulesId,
    text: String,
    rules: Rules,
}

impl RuleSet {
    /// # Errors
    /// When the text is not a valid rule file.
    pub fn parse(revision: u32, text: impl Into<String>) -> Result<Self, RulesError> {
        let text = text.into();
        let rules = Rules::parse(&text)?;
        Ok(Self::new(revision, text, rules))
    }

    /// The rules that come with the program.
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
            text.as_bytes(),
            built_in.as_bytes(),
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

    /// The rule file as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_rules_are_told_apart_and_the_same_are_the_same() {
        let own = "[[rule]]\nmatch = \"com.example.\"\nmeans = \"in_app\"\n";
        let with_built_in = format!("built_in = true\n{own}");
        let hash = |text: &str| RuleSet::parse(3, text).unwrap().id().hash;
        assert_eq!(hash(own), RuleSet::parse(4, own).unwrap().id().hash);
        assert_ne!(hash(own), hash(&with_built_in));
        assert_ne!(hash(own), RuleSet::built_in().id().hash);
        assert_eq!(RuleSet::built_in().id().revision, 0);
    }
}
