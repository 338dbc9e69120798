//! Bounds the memory and the time that the regular expressions of a document take. A short expression can compile to megabytes.

use std::error::Error;

use regex_automata::nfa::thompson::{BuildError, Config, NFA};

/// Maximum memory of one compiled expression.
const MOST: usize = 256 << 10;

/// The budget of one document. Compiling takes about 6 ms for each MiB.
#[derive(Debug)]
pub struct Expressions {
    budget: usize,
    left: usize,
}

/// Why an expression is rejected.
#[derive(Debug, thiserror::Error)]
pub enum ExpressionError {
    #[error("is not a regular expression: {0}")]
    Invalid(String),
    #[error("is too large once compiled: over {} KiB. Repetitions such as {{40}} multiply what they repeat", MOST >> 10)]
    TooLarge,
    #[error("the expressions up to here are too large together: over {} KiB once compiled", .budget >> 10)]
    UsedUp { budget: usize },
}

impl Expressions {
    #[must_use]
    pub fn new(budget: usize) -> Self {
        Self {
            budget,
            left: budget,
        }
    }

    /// Returns the part of the budget that is used.
    #[must_use]
    pub fn used(&self) -> usize {
        self.budget - self.left
    }

    /// Checks an expression. Subtracts its memory from the budget, and the cost of parsing it. Once the budget is used up, no expression is compiled.
    ///
    /// # Errors
    /// If the expression is invalid or too large.
    pub fn check(&mut self, expression: &str) -> Result<(), ExpressionError> {
        if self.left == 0 {
            let budget = self.budget;
            return Err(ExpressionError::UsedUp { budget });
        }
        // To parse a Unicode class takes about as long as to compile a few KiB, whatever remains of the class.
        let reading = expression.len() * 8 + classes(expression) * 4096;
        self.left = self.left.saturating_sub(reading);
        let most = MOST.min(self.left);
        let compiled = NFA::compiler()
            .configure(Config::new().nfa_size_limit(Some(most)))
            .build(expression);
        match compiled {
            Ok(nfa) => {
                self.left = self.left.saturating_sub(nfa.memory_usage());
                Ok(())
            }
            Err(error) if error.size_limit().is_some() => {
                self.left -= most;
                Err(match most {
                    MOST => ExpressionError::TooLarge,
                    _ => ExpressionError::UsedUp {
                        budget: self.budget,
                    },
                })
            }
            Err(error) => Err(ExpressionError::Invalid(detail(&error))),
        }
    }
}

/// Counts the named Unicode classes, such as `\w` or `\p{Greek}`.
fn classes(expression: &str) -> usize {
    let pairs = expression.as_bytes().windows(2);
    pairs
        .filter(|pair| {
            matches!(
                pair,
                [b'\\', b'p' | b'P' | b'w' | b'W' | b's' | b'S' | b'd' | b'D']
            )
        })
        .count()
}

/// Returns the fault and its place: a drawing of several lines.
fn detail(error: &BuildError) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_valid_or_rejected_with_a_reason() {
        let mut expressions = Expressions::new(1 << 20);
        assert!(expressions.check(r"^com\.example\.[a-z]+$").is_ok());
        let wrong = expressions.check("(").unwrap_err();
        assert!(matches!(wrong, ExpressionError::Invalid(_)), "{wrong}");
        let large = expressions.check(r"\w{40}").unwrap_err();
        assert!(matches!(large, ExpressionError::TooLarge), "{large}");
    }

    #[test]
    fn all_expressions_together_stay_within_the_budget() {
        let mut expressions = Expressions::new(1 << 20);
        let compiled = (0..1_000).filter(|_| expressions.check(r"\w+").is_ok());
        let compiled = compiled.count();
        assert!((30..80).contains(&compiled), "{compiled}");
        let over = expressions.check("a").unwrap_err();
        assert!(matches!(over, ExpressionError::UsedUp { .. }), "{over}");
    }
}
