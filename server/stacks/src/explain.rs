//! Explains the class of a stack: the rule that matched each frame, and the frame that decided.

use std::fmt;

use serde::Serialize;
use unjank_protocol::Frame;

use super::class::Class;
use super::names::Names;
use super::rule::{Origin, RuleSummary};
use super::rules::Rules;
use super::walk::{Role, Walk};

/// The maximum width of the column of frame names. Wider names are truncated, so that the rules stay visible.
const MAX_NAME_CHARS: usize = 72;

/// A class and the reasons for it. `Display` renders a table for a terminal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The class.
    pub class: Class,
    /// Every frame, innermost first.
    pub frames: Vec<FrameVerdict>,
    /// Whether frames that no rule matches count as the app's own.
    pub assumes_in_app: bool,
}

/// The verdict on one frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FrameVerdict {
    /// The frame's name as in the stack, demangled.
    pub name: String,
    /// The first rule that matches, if any.
    pub rule: Option<RuleSummary>,
    /// The frame's role in the classification.
    pub role: Role,
}

impl Rules {
    /// Classifies a stack and explains the verdict on every frame.
    #[must_use]
    pub fn explain(&self, frames: &[Frame<'_>]) -> Explanation {
        let mut walk = Walk::default();
        let verdict = |(index, frame)| {
            let names = Names::new(frame);
            let rule = self.first(&names);
            let role = walk.step(index, &names, rule, self.assumes_in_app());
            FrameVerdict {
                name: raw_name(&names),
                rule: rule.map(|rule| rule.summary(&names)),
                role,
            }
        };
        let verdicts = frames.iter().enumerate().map(verdict).collect();
        Explanation {
            class: Class::new(frames, &walk),
            frames: verdicts,
            assumes_in_app: self.assumes_in_app(),
        }
    }
}

fn raw_name(names: &Names<'_>) -> String {
    let class = names.shown_class();
    match (class.is_empty(), names.function().is_empty()) {
        (true, true) => names.image(),
        (true, false) => names.function().to_owned(),
        (false, true) => class.to_owned(),
        (false, false) => format!("{class}.{}", names.function()),
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = &self.class;
        writeln!(f, "{}", class.title)?;
        writeln!(f, "  category  {}", or_dash(&class.category))?;
        writeln!(f, "  culprit   {}", or_dash(&class.culprit))?;
        writeln!(f, "  owner     {}", or_dash(&class.owner))?;
        writeln!(f, "  group     {}", class.group_id)?;
        if class.not_a_cause {
            writeln!(
                f,
                "  The stack was sampled in an idle loop: the sample missed the stall, so no frame is blamed."
            )?;
        }
        writeln!(f)?;
        let cut: Vec<String> = self.frames.iter().map(|frame| cut(&frame.name)).collect();
        let width = cut
            .iter()
            .map(|name| name.chars().count())
            .max()
            .unwrap_or_default();
        for (index, (frame, name)) in self.frames.iter().zip(&cut).enumerate() {
            writeln!(
                f,
                "{index:>4}  {name:width$}  {:<12}{}",
                role_name(frame.role),
                Reason(frame, self.assumes_in_app)
            )?;
        }
        Ok(())
    }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

/// Truncates the start of a long name, because the function is at its end.
fn cut(name: &str) -> String {
    let excess = name.chars().count().saturating_sub(MAX_NAME_CHARS);
    if excess == 0 {
        return name.to_owned();
    }
    std::iter::once('…')
        .chain(name.chars().skip(excess + 1))
        .collect()
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Culprit => "CULPRIT",
        Role::InApp => "in app",
        Role::Category => "CATEGORY",
        Role::NotACause => "NOT A CAUSE",
        Role::Skipped => "skipped",
        Role::Unclaimed => "unclaimed",
    }
}

/// The last column: the rule, or the reason there is none.
struct Reason<'e>(&'e FrameVerdict, bool);

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(frame, assumes_in_app) = self;
        let Some(rule) = &frame.rule else {
            return f.write_str(match frame.role {
                Role::Culprit | Role::InApp if *assumes_in_app => {
                    "no rule matches, and no rule marks in-app code"
                }
                _ => "no rule matches",
            });
        };
        let origin = match rule.origin {
            Origin::File => "rule",
            Origin::BuiltIn => "built-in rule",
        };
        write!(
            f,
            "{origin} {} (line {}): {} means {}",
            rule.index, rule.line, rule.pattern, rule.means
        )?;
        if !rule.category.is_empty() {
            write!(f, " {:?}", rule.category)?;
        }
        if !rule.owner.is_empty() {
            write!(f, ", owner {}", rule.owner)?;
        }
        Ok(())
    }
}
