//! The source files of classes.

/// R8 writes this for classes that it made up.
const SYNTHETIC: &str = "R8$$SyntheticClass";
/// Devices write this in place of a file for native methods.
const NATIVE: &str = "Native Method";

/// Returns the source file of a class: that of the mapping, else one guessed from the name.
///
/// `reported` is the file in the frame, and `outer` the known source file of the class that the frame ran. A guess takes their
/// extension: the app may have kept it, and code is mostly inlined into code of the same language.
pub(super) fn source_file(
    class: &str,
    known: Option<&str>,
    outer: Option<&str>,
    reported: &str,
) -> String {
    if let Some(known) = known.filter(|known| *known != SYNTHETIC) {
        return known.to_owned();
    }
    if reported == NATIVE {
        return reported.to_owned();
    }
    let name = class.rsplit('.').next().unwrap_or(class);
    // Functions of `Cart.kt` outside of classes are in `CartKt`; the Compose compiler wraps them in `ComposableSingletons$CartKt`.
    let kotlin = (name.split('$'))
        .filter_map(|part| part.strip_suffix("Kt"))
        .find(|part| !part.is_empty());
    let outermost = name.split('$').next().unwrap_or(name);
    let is_kotlin = |file: &str| file.ends_with(".kt");
    match kotlin {
        Some(kotlin) => format!("{kotlin}.kt"),
        None if is_kotlin(reported) || outer.is_some_and(is_kotlin) => format!("{outermost}.kt"),
        None => format!("{outermost}.java"),
    }
}

#[cfg(test)]
mod tests {
    use super::source_file;

    #[test]
    fn files_are_known_or_guessed() {
        let cases = [
            (
                "shop.Cart",
                Some("Basket.kt"),
                None,
                "SourceFile",
                "Basket.kt",
            ),
            ("shop.Cart$Item", None, None, "SourceFile", "Cart.java"),
            ("shop.CartKt", None, None, "", "Cart.kt"),
            (
                "shop.ComposableSingletons$CartKt",
                None,
                None,
                "",
                "Cart.kt",
            ),
            ("shop.Cart", None, None, "Cart.kt", "Cart.kt"),
            (
                "shop.Price",
                None,
                Some("Cart.kt"),
                "SourceFile",
                "Price.kt",
            ),
            ("shop.Cart", None, None, "Native Method", "Native Method"),
            (
                "shop.Cart$$Lambda0",
                Some("R8$$SyntheticClass"),
                None,
                "",
                "Cart.java",
            ),
            ("Cart", None, None, "Unknown Source", "Cart.java"),
            ("shop.Kt", None, None, "", "Kt.java"),
        ];
        for (class, known, outer, reported, expected) in cases {
            assert_eq!(
                source_file(class, known, outer, reported),
                expected,
                "{class}"
            );
        }
    }
}
