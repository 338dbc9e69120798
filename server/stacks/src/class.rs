//! The class of a stack: its title, category and owner, and the group it belongs to.

use serde::{Serialize, Serializer};
use unjank_protocol::Frame;

use super::group::group_id;
use super::names::Names;
use super::qualified_name::{joined, qualified_name};
use super::rule::Rule;
use super::stable_names::{stable_class, stable_function};
use super::walk::Walk;

/// The maximum size of a title. Longer titles are truncated, because a title is one line of a table.
const MAX_TITLE_BYTES: usize = 240;
/// Classes with shorter simple names were minified by R8. They are shown with their package, since the simple name
/// alone is meaningless.
const MIN_SIMPLE_NAME_BYTES: usize = 3;

/// The result of classifying a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Class {
    /// The kind of work that blocked, such as `JSON on main thread`. Empty if no rule names one.
    pub category: String,
    /// The app's innermost frame, as `class.function` without counters and generated parts. Empty if the stack has none.
    pub culprit: String,
    /// The team named by the culprit's rule, or else by the category's rule.
    pub owner: String,
    /// The id of the group: 64 bits, stable across releases, never 0. Serialized to JSON as text, because JSON readers
    /// lose the last digits of such large numbers.
    #[serde(serialize_with = "as_text")]
    pub group_id: u64,
    /// A one-line title: `in` the culprit, or `at` a frame if no frame is the app's.
    pub title: String,
    /// Whether the stack was sampled in an idle loop and so does not explain the stall.
    pub not_a_cause: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn as_text<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

impl Class {
    pub(super) fn new(frames: &[Frame<'_>], walk: &Walk<'_>) -> Self {
        if let Some(idle) = walk.idle.and_then(|index| frames.get(index)) {
            return Self::idle(&Names::new(idle));
        }
        let category = walk.category.map_or("", |(_, rule)| rule.category.as_str());
        let owner = |rule: Option<&Rule>| {
            rule.map(|rule| rule.owner.clone())
                .filter(|owner| !owner.is_empty())
        };
        let owner = owner(walk.culprit_rule)
            .or_else(|| owner(walk.category.map(|(_, rule)| rule)))
            .unwrap_or_default();
        let Some(shown) = walk
            .culprit
            .or(walk.first)
            .or(Some(0))
            .and_then(|index| frames.get(index))
        else {
            return Self::empty();
        };
        let names = Names::new(shown);
        match walk.in_app.first() {
            Some(culprit) => Self {
                category: category.to_owned(),
                culprit: culprit.clone(),
                owner,
                group_id: group_id("in_app", category, &walk.in_app),
                title: title(category, "in", &names),
                not_a_cause: false,
            },
            None => Self {
                category: category.to_owned(),
                culprit: String::new(),
                owner,
                group_id: group_id("system", category, &[qualified_name(&names)]),
                title: title(category, "at", &names),
                not_a_cause: false,
            },
        }
    }

    fn idle(names: &Names<'_>) -> Self {
        Self {
            category: String::new(),
            culprit: String::new(),
            owner: String::new(),
            group_id: group_id("idle", "", &[qualified_name(names)]),
            title: title("idle", "at", names),
            not_a_cause: true,
        }
    }

    fn empty() -> Self {
        Self {
            category: String::new(),
            culprit: String::new(),
            owner: String::new(),
            group_id: group_id("empty", "", &[]),
            title: "no stack".to_owned(),
            not_a_cause: false,
        }
    }
}

fn title(category: &str, preposition: &str, names: &Names<'_>) -> String {
    let place = short_name(names);
    let mut title = if category.is_empty() {
        place
    } else {
        format!("{category} {preposition} {place}")
    };
    if title.len() > MAX_TITLE_BYTES {
        title.truncate(title.floor_char_boundary(MAX_TITLE_BYTES - "…".len()));
        title.push('…');
    }
    title
}

/// Returns a short name for a table: the last part of the class, or the last two parts of a path.
fn short_name(names: &Names<'_>) -> String {
    let class = stable_class(names.shown_class());
    let function = stable_function(names.function());
    let simple = match simple_name(&class) {
        simple if simple.len() >= MIN_SIMPLE_NAME_BYTES => simple,
        _ => class.as_ref(),
    };
    joined(simple, short_function(&function)).unwrap_or_else(|| names.image())
}

/// `com.shop.Main` → `Main`. Classes of which only one ran stay together: `com.{other.Util, shop.Main}` → `{other.Util, shop.Main}`.
fn simple_name(class: &str) -> &str {
    let package = match class.rfind('{') {
        Some(several) if class.ends_with('}') => class.get(..several).unwrap_or_default(),
        _ => class,
    };
    let start = package
        .rfind(['.', ':'])
        .map_or(0, |separator| separator + 1);
    class.get(start..).unwrap_or(class)
}

/// `a::b::Cart::pay` → `Cart::pay`. Ignores `::` within brackets.
fn short_function(function: &str) -> &str {
    let mut depth = 0_u32;
    let mut starts = [0, 0];
    let mut previous = ' ';
    for (position, letter) in function.char_indices() {
        match letter {
            '<' | '(' | '[' | '{' => depth += 1,
            // The arrow of a return type is not a bracket.
            '>' if previous == '-' => {}
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ':' if depth == 0 && previous == ':' => starts = [starts[1], position + 1],
            _ => {}
        }
        previous = letter;
    }
    function
        .get(starts[0]..)
        .filter(|short| !short.is_empty())
        .unwrap_or(function)
}
