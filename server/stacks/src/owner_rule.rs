//! Writes the rule that gives a group of stacks an owner, and puts the rule into a rule file, before all others.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use toml::{Spanned, Table, Value};
use unjank_protocol::Frame;

use super::names::Names;
use super::rules::Rules;
use super::stable_names::{stable_class, stable_function};

/// A rule, and the rule file with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerRule {
    /// TOML of the rule alone.
    pub rule: String,
    /// TOML of the whole file.
    pub rules: String,
}

/// Why there is no such rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoOwnerRule {
    #[error(
        "no frame of these stacks belongs to the app, and owners follow from the app's code: add a rule with means = \"in_app\" first"
    )]
    NoCulprit,
    #[error("the app's frame has neither a class nor a function: upload its symbols first")]
    Nameless,
    #[error(
        "the app's frame is the code outside the functions of a script, which has no name: add a rule with file = \"*cart*.js\" (the name of the script, with * for its hash) and means = \"in_app\" on the page Rules"
    )]
    TopLevelCode,
    #[error("the rules are not written as [[rule]] sections: add the rule on the page Rules")]
    OtherLayout,
}

/// The names of culprits, as globs.
#[derive(Default)]
struct Culprits {
    globs: BTreeSet<String>,
    /// Empty: any function, or the globs contain it.
    functions: BTreeSet<String>,
    stacks: usize,
}

/// Writes the rule for the culprits of stacks. `text` is the rule file, and `rules` are its compiled rules.
///
/// # Errors
/// If the stacks have no culprit with a name, or the file cannot be extended.
pub fn owner_rule(
    (text, rules): (&str, &Rules),
    stacks: &[Vec<Frame<'_>>],
    (owner, note): (&str, &str),
) -> Result<OwnerRule, NoOwnerRule> {
    let culprits = culprits(rules, stacks)?;
    let mut rule = String::from("[[rule]]\n");
    let mut key = |name: &str, value: Value| rule.push_str(&format!("{name} = {value}\n"));
    key("glob", one_or_many(culprits.globs));
    key("on", "class".into());
    if !culprits.functions.is_empty() {
        key("function", one_or_many(culprits.functions));
    }
    key("means", "in_app".into());
    key("owner", owner.into());
    key("note", note.into());
    let rules = with_rule(text, &rule, rules.assumes_in_app())?;
    Ok(OwnerRule { rule, rules })
}

/// Returns the culprits of most stacks. Languages name frames differently: with a class, or with only a function and its path.
fn culprits(rules: &Rules, stacks: &[Vec<Frame<'_>>]) -> Result<Culprits, NoOwnerRule> {
    let mut by_kind: BTreeMap<bool, Culprits> = BTreeMap::new();
    let mut reason = NoOwnerRule::NoCulprit;
    for frames in stacks {
        let Some(frame) = rules.walk(frames).culprit.and_then(|at| frames.get(at)) else {
            continue;
        };
        let names = Names::new(frame);
        let (has_class, function) = (!names.class.is_empty(), names.function());
        if !has_class && function.is_empty() {
            // Symbols give the code of an image a function, and that of a script none.
            reason = match names.module.is_empty() && !names.file.is_empty() {
                true => NoOwnerRule::TopLevelCode,
                false => NoOwnerRule::Nameless,
            };
            continue;
        }
        let one = by_kind.entry(has_class).or_default();
        one.stacks += 1;
        let subject = names.class_or_function();
        one.globs.insert(if has_class {
            glob(subject, &stable_class(subject))
        } else {
            glob(subject, &stable_function(subject))
        });
        if has_class && !function.is_empty() {
            one.functions
                .insert(glob(function, &stable_function(function)));
        }
    }
    let most = by_kind.into_values().max_by_key(|one| one.stacks);
    most.ok_or(reason)
}

/// Returns a glob for a name in which the parts that differ between builds are `*`. `stable` is the name without these parts.
fn glob(name: &str, stable: &str) -> String {
    let mut glob = String::new();
    let mut kept = stable.chars().peekable();
    let mut in_gap = false;
    for letter in name.chars() {
        if kept.next_if_eq(&letter).is_some() {
            in_gap = false;
            glob.push(letter);
        } else if !in_gap {
            in_gap = true;
            // A separator is kept, so that `Cart$1` does not become `Cart*`.
            if !letter.is_alphanumeric() && letter != '*' {
                glob.push(letter);
            }
            glob.push('*');
        }
    }
    glob
}

fn one_or_many(texts: BTreeSet<String>) -> Value {
    let mut texts: Vec<Value> = texts.into_iter().map(Value::from).collect();
    match (texts.len(), texts.pop()) {
        (1, Some(only)) => only,
        (_, last) => Value::Array(texts.into_iter().chain(last).collect()),
    }
}

#[derive(Deserialize)]
struct Outline {
    assume_in_app: Option<bool>,
    #[serde(default)]
    rule: Vec<Spanned<Table>>,
}

/// Puts a rule before all others, in place of a rule that differs only in its owner and its note.
fn with_rule(text: &str, rule: &str, assumes_in_app: bool) -> Result<String, NoOwnerRule> {
    let outline: Outline = toml::from_str(text).map_err(|_| NoOwnerRule::OtherLayout)?;
    let is_section = |one: &Spanned<Table>| {
        let header = text.get(one.span().start..).unwrap_or_default();
        header.starts_with("[[")
    };
    if !outline.rule.iter().all(is_section) {
        return Err(NoOwnerRule::OtherLayout);
    }
    let starts: Vec<usize> = (outline.rule.iter())
        .map(|one| section_start(text, one.span().start))
        .chain([text.len()])
        .collect();
    let (before, rest) = text.split_at(starts[0]);
    let mut out = before.to_owned();
    separate(&mut out);
    if outline.assume_in_app.is_none() && assumes_in_app {
        // The first rule with `in_app` would otherwise change what frames without a rule are.
        out.push_str("assume_in_app = true\n\n");
    }
    out.push_str(rule);
    let new = toml::from_str::<Outline>(rule).map_err(|_| NoOwnerRule::OtherLayout)?;
    let new = new.rule.first().map(|one| purpose(one.get_ref()));
    let replaced = outline
        .rule
        .iter()
        .position(|one| Some(purpose(one.get_ref())) == new);
    let kept = match replaced {
        None => rest.to_owned(),
        Some(place) => {
            let cut = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
            format!(
                "{}{}",
                cut(starts[0]..starts[place]),
                cut(starts[place + 1]..text.len())
            )
        }
    };
    if !kept.trim().is_empty() {
        separate(&mut out);
        out.push_str(&kept);
    }
    Ok(out)
}

/// The keys of a rule that decide which stacks it concerns.
fn purpose(rule: &Table) -> Table {
    let mut rule = rule.clone();
    rule.remove("owner");
    rule.remove("note");
    rule
}

/// Ends a text with an empty line, unless it is empty.
fn separate(text: &mut String) {
    let end = text.trim_end().len();
    text.truncate(end);
    if end > 0 {
        text.push_str("\n\n");
    }
}

/// The start of a section with the comment directly above it.
fn section_start(text: &str, header: usize) -> usize {
    let mut start = header;
    while let Some(above) = text.get(..start).and_then(|above| above.strip_suffix('\n')) {
        let line = above.rfind('\n').map_or(0, |end| end + 1);
        let is_comment = above
            .get(line..)
            .is_some_and(|line| line.trim_start().starts_with('#'));
        if !is_comment {
            break;
        }
        start = line;
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(class: &str, function: &str) -> Frame<'static> {
        Frame {
            class: class.to_owned().into(),
            function: function.to_owned().into(),
            ..Frame::default()
        }
    }

    fn write(text: &str, stacks: &[Vec<Frame<'static>>], owner: &str) -> OwnerRule {
        let rules = Rules::parse(text).unwrap();
        owner_rule((text, &rules), stacks, (owner, "why")).unwrap()
    }

    const SHOP: &str = "version = 3\nbuilt_in = true\n\n# All of the shop.\n[[rule]]\nmatch = \"com.example.\"\nmeans = \"in_app\"\nowner = \"shop\"\n";

    #[test]
    fn the_rule_wins_over_broader_rules_and_keeps_the_group() {
        let stacks = [vec![
            frame("com.google.gson.Gson", "toJson"),
            frame("com.example.Cart$1", "lambda$total$0"),
            frame("com.example.Main", "main"),
        ]];
        let written = write(SHOP, &stacks, "team \"cart\"");
        assert_eq!(
            written.rule,
            "[[rule]]\nglob = \"com.example.Cart$*\"\non = \"class\"\nfunction = \"lambda$total$*\"\nmeans = \"in_app\"\n\
             owner = 'team \"cart\"'\nnote = \"why\"\n"
        );
        assert_eq!(
            written.rules,
            SHOP.replace("# All", &format!("{}\n# All", written.rule))
        );
        let (before, after) = (
            Rules::parse(SHOP).unwrap().classify(&stacks[0]),
            Rules::parse(&written.rules).unwrap().classify(&stacks[0]),
        );
        assert_eq!(before.group_id, after.group_id);
        assert_eq!(after.owner, "team \"cart\"");
        // Another class with a similar name keeps its owner.
        let list = [frame("com.example.CartList", "total")];
        assert_eq!(
            Rules::parse(&written.rules).unwrap().classify(&list).owner,
            "shop"
        );
    }

    #[test]
    fn another_owner_for_the_same_group_replaces_the_rule() {
        let stacks = [vec![frame("com.example.Cart", "total")]];
        let first = write(SHOP, &stacks, "team-a");
        let with_comment = format!("{}\n# The end.\n", first.rules);
        let second = write(&with_comment, &stacks, "team-b");
        assert!(!second.rules.contains("team-a"), "{}", second.rules);
        assert_eq!(second.rules, with_comment.replace("team-a", "team-b"));
    }

    #[test]
    fn rules_that_assume_in_app_still_do() {
        let stacks = [vec![
            frame("org.unknown.Helper", "help"),
            frame("com.example.Cart", "total"),
        ]];
        let text = "built_in = true\n";
        let written = write(text, &stacks, "team-a");
        let after = Rules::parse(&written.rules).unwrap();
        assert!(after.assumes_in_app());
        let other = [frame("org.other.Thing", "work")];
        assert_eq!(
            after.classify(&other),
            Rules::parse(text).unwrap().classify(&other)
        );
    }

    #[test]
    fn functions_with_a_path_need_no_class() {
        let stacks = [vec![frame("", "shop::cart::total::{{closure}}")]];
        let written = write("built_in = true\n", &stacks, "team-a");
        assert!(
            written.rule.contains("glob = \"shop::cart::total:*\"")
                && !written.rule.contains("function"),
            "{}",
            written.rule
        );
        let after = Rules::parse(&written.rules).unwrap();
        assert_eq!(after.classify(&stacks[0]).owner, "team-a");
    }

    #[test]
    fn stacks_without_a_culprit_and_other_layouts_are_refused() {
        let refused = |text: &str, frames: Vec<Frame<'static>>| {
            let rules = Rules::parse(text).unwrap();
            owner_rule((text, &rules), &[frames], ("a", "b")).unwrap_err()
        };
        let own = vec![frame("com.example.Cart", "total")];
        let of_system = vec![frame("android.os.Binder", "transact")];
        assert_eq!(refused(SHOP, of_system), NoOwnerRule::NoCulprit);
        let inline = "rule = [{match = \"com.example.\", means = \"in_app\"}]\n";
        assert_eq!(refused(inline, own), NoOwnerRule::OtherLayout);
        let image = vec![Frame {
            module: "libshop.so".into(),
            ..Frame::default()
        }];
        assert_eq!(refused("built_in = true\n", image), NoOwnerRule::Nameless);
        let advice = "file = \"*cart*.js\"";
        let refusal = NoOwnerRule::TopLevelCode;
        assert!(refusal.to_string().contains(advice), "{refusal}");
        let advised = format!(
            "built_in = true\n[[rule]]\n{advice}\nmeans = \"in_app\"\nowner = \"team-a\"\n"
        );
        for path in ["/cart.js", "/assets/cart-BqV3x9aZ.js"] {
            let script = vec![Frame {
                file: format!("https://shop.example{path}").into(),
                line: 1,
                ..Frame::default()
            }];
            let owner = Rules::parse(&advised).unwrap().classify(&script).owner;
            assert_eq!(owner, "team-a", "{path}");
            assert_eq!(refused("built_in = true\n", script), refusal, "{path}");
        }
    }
}
