//! One frame for several functions of which only one ran, so that nothing takes them for callers of each other or blames one of them.

use unjank_symbols::Location;

/// Returns one location for all alternatives, without the fields in which they differ.
pub(super) fn one_of(alternatives: &[Location]) -> Option<Location> {
    let (first, others) = alternatives.split_first()?;
    let mut one = first.clone();
    if others.iter().any(|other| other.file != one.file) {
        one.file.clear();
    }
    if others.iter().any(|other| other.line != one.line) || one.file.is_empty() {
        one.line = 0;
    }
    one.class = class_of(&distinct(alternatives, |one| &one.class));
    one.function = distinct(alternatives, |one| &one.function).join(" or ");
    Some(one)
}

fn distinct<'l>(
    locations: &'l [Location],
    text: impl Fn(&'l Location) -> &'l String,
) -> Vec<&'l str> {
    let mut texts: Vec<&str> = Vec::new();
    for text in locations.iter().map(text) {
        if !texts.contains(&text.as_str()) {
            texts.push(text);
        }
    }
    texts
}

/// `shop.{Cart, Prices}`. Rules for the package match this class, and rules for one of the classes do not.
fn class_of(classes: &[&str]) -> String {
    let [first, others @ ..] = classes else {
        return String::new();
    };
    if others.is_empty() {
        return (*first).to_owned();
    }
    let ends = first.match_indices('.').map(|(dot, _)| dot + 1);
    let package = |end: &usize| {
        let package = first.get(..*end).unwrap_or_default();
        others.iter().all(|other| other.starts_with(package))
    };
    let end = ends.take_while(package).last().unwrap_or_default();
    let rest = classes
        .iter()
        .map(|class| class.get(end..).unwrap_or_default());
    let rest: Vec<&str> = rest.collect();
    format!(
        "{}{{{}}}",
        first.get(..end).unwrap_or_default(),
        rest.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Class, function and line.
    type Names<'t> = (&'t str, &'t str, u32);

    fn named(names: &[Names<'_>]) -> (String, String, u32) {
        let location = |(class, function, line): &Names<'_>| Location {
            class: (*class).to_owned(),
            function: (*function).to_owned(),
            file: "Cart.kt".to_owned(),
            line: *line,
            ..Location::default()
        };
        let locations: Vec<Location> = names.iter().map(location).collect();
        let one = one_of(&locations).unwrap();
        (one.class, one.function, one.line)
    }

    #[test]
    fn names_say_that_one_of_several_ran() {
        let cases: [(&[Names<'_>], Names<'_>); 7] = [
            (&[("shop.Cart", "pay", 3)], ("shop.Cart", "pay", 3)),
            (
                &[("shop.Cart", "pay", 3), ("shop.Cart", "pay", 4)],
                ("shop.Cart", "pay", 0),
            ),
            (
                &[("shop.Cart", "add", 3), ("shop.Cart", "pay", 3)],
                ("shop.Cart", "add or pay", 3),
            ),
            (
                &[("shop.Cart", "add", 0), ("shop.Prices", "sum", 0)],
                ("shop.{Cart, Prices}", "add or sum", 0),
            ),
            (
                &[("shop.Cart", "pay", 0), ("shop.ui.Cart", "pay", 0)],
                ("shop.{Cart, ui.Cart}", "pay", 0),
            ),
            (
                &[("shop.Cart", "pay", 0), ("org.Bank", "pay", 0)],
                ("{shop.Cart, org.Bank}", "pay", 0),
            ),
            (
                &[("Cart", "pay", 0), ("Bank", "pay", 0)],
                ("{Cart, Bank}", "pay", 0),
            ),
        ];
        for (names, (class, function, line)) in cases {
            assert_eq!(
                named(names),
                (class.to_owned(), function.to_owned(), line),
                "{names:?}"
            );
        }
    }
}
