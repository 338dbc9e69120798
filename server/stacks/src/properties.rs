//! Properties that hold for every stack.

use std::sync::LazyLock;

use proptest::prelude::*;
use unjank_protocol::Frame;

use super::names::Names;
use super::rule::{On, Pattern, Rule, regex_of_glob};
use super::{Rules, parse_text, stack_hash};

static BUILT_IN: LazyLock<Rules> = LazyLock::new(Rules::built_in);

/// Names with few distinct letters, so that prefixes overlap.
fn name() -> impl Strategy<Value = String> {
    let pieces = vec!["a", "b", ".", "ab", "::", "é", "$1", "_Z", "/"];
    proptest::collection::vec(proptest::sample::select(pieces), 0..7)
        .prop_map(|parts| parts.concat())
}

fn any_frame() -> impl Strategy<Value = Frame<'static>> {
    let text = || {
        prop_oneof![
            name(),
            any::<String>(),
            "[-_$#@{}<>:. a-z0-9+()\\[\\]]{0,40}"
        ]
    };
    (text(), text(), text(), text(), any::<i64>()).prop_map(
        |(class, module, function, file, line)| Frame {
            class: class.into(),
            module: module.into(),
            function: function.into(),
            file: file.into(),
            line,
            ..Frame::default()
        },
    )
}

/// A rule file with lists, conditions and all kinds of patterns, in any order.
fn rule_file() -> impl Strategy<Value = String> {
    let pattern = prop_oneof![
        6 => proptest::collection::vec(name(), 1..4).prop_map(|list| format!("match = {list:?}")),
        3 => proptest::collection::vec((prop_oneof!["\\PC{0}", "[*?]"], name(), prop_oneof!["\\PC{0}", "[*?]"]), 1..4)
            .prop_map(|list| format!("glob = {:?}", list.iter().map(|(a, b, c)| format!("{a}{b}{c}")).collect::<Vec<_>>())),
        1 => name().prop_map(|text| format!("regex = '^{}'", regex::escape(&text))),
        1 => Just("function = \"a*\"".to_owned()),
    ];
    let on =
        prop_oneof![4 => Just(""), 1 => Just("on = \"class\"\n"), 1 => Just("on = \"module\"\n")];
    let condition = prop_oneof![4 => Just(""), 1 => Just("file = \"*b*\"\n")];
    let means = prop_oneof![
        Just("means = \"in_app\""),
        Just("means = \"category\"\ncategory = \"x\""),
        Just("means = \"ignore\""),
        Just("means = \"not_a_cause\"")
    ];
    let rule = (pattern, on, condition, means).prop_map(|(pattern, on, condition, means)| {
        let on = if pattern.starts_with("function") {
            ""
        } else {
            on
        };
        format!("[[rule]]\n{pattern}\n{on}{condition}{means}\n")
    });
    proptest::collection::vec(rule, 0..12).prop_map(|rules| rules.concat().replace("\"\"", "\"a\""))
}

/// Matches a rule as documented, without optimizations.
fn naive_match(rule: &Rule, names: &Names<'_>) -> bool {
    let module = Some(names.module).filter(|module| !module.is_empty());
    let mut subjects = Vec::new();
    if rule.on != Some(On::Module) {
        subjects.push(names.class_or_function());
    }
    if rule.on != Some(On::Class) {
        subjects.extend(module.into_iter().chain(names.module_file()));
    }
    let is_match = |regex: &str, subject: &str| regex::Regex::new(regex).unwrap().is_match(subject);
    let matches = |subject: &&str| match &rule.pattern {
        Pattern::Any => true,
        Pattern::Prefixes(prefixes) => prefixes
            .iter()
            .any(|prefix| subject.starts_with(prefix.as_str())),
        Pattern::Globs(globs) => globs
            .iter()
            .any(|glob| is_match(&regex_of_glob(glob), subject)),
        Pattern::Regexes(regexes) => regexes.iter().any(|regex| is_match(regex, subject)),
    };
    subjects.iter().any(matches) && rule.accepts(names)
}

proptest! {
    #[test]
    fn no_stack_from_a_device_causes_a_panic(frames in proptest::collection::vec(any_frame(), 0..12)) {
        let rules = &*BUILT_IN;
        let class = rules.classify(&frames);
        prop_assert_ne!(class.group_id, 0);
        prop_assert!(!class.title.is_empty());
        let explanation = rules.explain(&frames);
        prop_assert_eq!(&explanation.class, &class);
        prop_assert!(!explanation.to_string().is_empty());
        prop_assert_eq!(stack_hash(&frames) == 0, frames.is_empty());
    }

    #[test]
    fn no_text_causes_a_panic(text in any::<String>()) {
        let _read = parse_text(&text);
    }

    #[test]
    fn no_text_like_a_stack_causes_a_panic(
        lines in proptest::collection::vec("(at |#[0-9]{1,2} |[0-9]{1,2}[: ]|frame #0: |Caused by: |\\.\\.\\. |\"main\" |Thread 0)?[ a-zé.:@(/`+0-9x\"#-]{0,30}\\)?", 0..12),
    ) {
        let _read = parse_text(&lines.join("\n"));
    }

    #[test]
    fn no_rule_file_causes_a_panic(text in any::<String>()) {
        let _read = Rules::parse(&text);
    }

    #[test]
    fn the_first_rule_wins_as_in_a_linear_search(file in rule_file(), frames in proptest::collection::vec(any_frame(), 1..12)) {
        let rules = Rules::parse(&file).unwrap();
        for frame in &frames {
            let names = Names::new(frame);
            let naive = rules.all().iter().find(|rule| naive_match(rule, &names)).map(|rule| rule.index);
            prop_assert_eq!(rules.first(&names).map(|rule| rule.index), naive, "{} on {:?}", file, frame);
        }
    }

    #[test]
    fn a_prefix_that_is_reported_as_shadowed_never_wins(file in rule_file(), frames in proptest::collection::vec(any_frame(), 1..12)) {
        let rules = Rules::parse(&file).unwrap();
        let warnings = rules.warnings();
        for frame in &frames {
            let names = Names::new(frame);
            let Some(rule) = rules.first(&names).filter(|rule| matches!(rule.pattern, Pattern::Prefixes(_))) else { continue };
            let matching = rule.pattern.prefixes().filter(|prefix| names.subjects().any(|subject| subject.starts_with(prefix)));
            let mut reported = matching.map(|prefix| {
                let start = format!("rule {} (line {}): {prefix:?} never", rule.index, rule.line);
                warnings.iter().any(|warning| warning.starts_with(&start))
            }).peekable();
            prop_assert!(reported.peek().is_none() || !reported.all(|reported| reported), "{} on {:?}", file, frame);
        }
    }

    #[test]
    fn lines_and_counters_do_not_split_a_group(
        depth in 1_usize..5,
        lines in proptest::collection::vec(0_i64..5_000, 16),
        counters in proptest::collection::vec(0_u32..2_000, 16),
        hash in "[0-9a-f]{16}",
    ) {
        let build = |lines: &[i64], counters: &[u32], depth: usize, hash: &str| {
            let [a, b, c, d, e, ..] = counters else { unreachable!("sixteen were made") };
            let mut names = vec![
                ("com.google.gson.Gson".to_owned(), "toJson".to_owned()),
                (format!("com.example.Cart${a}"), "onClick".to_owned()),
                ("com.example.Cart".to_owned(), format!("lambda$pay${b}")),
                (format!("com.example.Cart$$ExternalSyntheticLambda{c}"), "run".to_owned()),
                (String::new(), format!("shop::cart::pay::{{{{closure}}}}::h{hash}")),
                (String::new(), format!("closure #{d} in Cart.pay()")),
                (String::new(), format!("pay${e}")),
            ];
            names.extend(std::iter::repeat_n(("com.example.Tree".to_owned(), "walk".to_owned()), depth));
            let frames: Vec<Frame<'static>> = names.into_iter().zip(lines).map(|((class, function), line)| Frame {
                class: class.into(), function: function.into(), line: *line, ..Frame::default()
            }).collect();
            BUILT_IN.classify(&frames)
        };
        let one = build(&lines, &counters, depth, &hash);
        let other = build(&[1; 16], &[1; 16], 1, "0123456789abcdef");
        prop_assert_eq!(one, other);
    }
}

#[test]
fn nested_prefixes_are_rejected_before_they_use_much_memory() {
    let rules = |count: usize| {
        let rule = |index: usize| {
            let prefix = "a".repeat(index / 3 + 1);
            format!("[[rule]]\nmatch = '{prefix}'\nmeans = 'ignore'\nfunction = 'f{index}'\n")
        };
        (0..count).map(rule).collect::<String>()
    };
    Rules::parse(&rules(600)).unwrap();
    let error = Rules::parse(&rules(2_400)).unwrap_err().to_string();
    assert!(
        error.contains("begin with the prefixes of others"),
        "{error}"
    );
}
