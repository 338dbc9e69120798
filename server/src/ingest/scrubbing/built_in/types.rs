//! Words, types and labels of code that look like secrets: what follows `Basic`, `password:` or `token=`.

use std::cell::LazyCell;
use std::sync::LazyLock;

use regex::Regex;

use super::patterns::regex;

/// How many bytes before a match are searched for a parenthesis.
const NEAR: usize = 200;

/// Whether what follows `Basic` or `Bearer` is a word of a sentence or an identifier, or, after `Basic`, several of them. Credentials have
/// digits, or letters of both cases that are not words. A token of `Bearer` may be several words.
pub(super) fn is_word(scheme: &str, text: &str) -> bool {
    static ONE: LazyLock<Regex> = LazyLock::new(|| regex(r"^[A-Z]?[a-z]+(?:[A-Z][a-z]{2,})*\.?$"));
    static WORD: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^(?:[A-Z]{2,6}[a-z]{2,}|[A-Z]?[a-z]+)(?:[A-Z][a-z]{2,})*$"));
    if !scheme.eq_ignore_ascii_case("basic") {
        return ONE.is_match(text);
    }
    let text = text.trim_end_matches('.');
    // Neither `.` nor `-` is in a credential of `Basic`, so a number may end a word there.
    let may_end_in_digit = text.contains(['.', '-']);
    text.split(['.', '-', '_', '/']).all(|word| {
        let without = word.trim_end_matches(|char: char| char.is_ascii_digit());
        let is_short = word.len() - without.len() <= 2;
        WORD.is_match(if may_end_in_digit && is_short {
            without
        } else {
            word
        })
    })
}

/// Whether the text after `password:` or `password=` says that there is no value, or is the type of a parameter.
pub(super) fn is_type(before: &str, separator: char, text: &str) -> bool {
    static LITERAL: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"(?x) ^ [(<]? (?: null | NULL | nil | None | nullptr | undefined | true | false | True | False ) [)>\]}.]* $",
        )
    });
    /// Types that are known wherever they are.
    static TYPE: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"(?x) ^ [(&*]* (?: [A-Za-z]+ (?: \. | :: ) )*
              (?: String | str | Str | Char (?:Sequence|Array)? | ByteArray | Data | Int (?:eger|[0-9]+)? | UInt[0-9]* | Long | Bool (?:ean)?
                | Any | Object | Unit | Void | NSString | string | number | boolean
                | [iu] (?: 8 | 16 | 32 | 64 | 128 | size ) | f32 | f64 | u?int (?:8|16|32|64)? (?:_t)? | size_t | c_char
                | char | bytes? | bool | float | double | long | short | void | object | dynamic )
              [?!*)>\]}]* $",
        )
    });
    /// The text of an object without a text of its own: `android.os.BinderProxy@5c8e1a2`, `Token{5c8e1a2`.
    static OBJECT: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"(?x) ^ [(]? (?: (?: (?: [a-z][a-z0-9_]*\. ){2,} [A-Z][A-Za-z0-9_$/]* | I?Binder (?:Proxy)? ) @ [0-9a-f]{1,8}
                | (?: [A-Z][A-Za-z]* )? (?: Token | Record ) \{ [0-9a-f]{5,8} ) [)>\]}.]* $",
        )
    });
    /// Types with types in angle brackets. The end is missing if the text has a blank or a comma in them: `Map<String, Cart>`.
    static GENERIC: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"(?x) ^ [(&*]* (?: [A-Za-z]+ (?: \. | :: ) )*
              (?: (?:Mutable|Array|Linked|Read[Oo]nly|I)? (?:List|Collection|Iterable|Sequence)
                | (?:Mutable|Hash|Linked|BTree|Tree)? (?:Map|Set) | Dictionary | Record | IEnumerable | Array | Slice | Vec | VecDeque
                | Option | Optional | Nullable | Either | Result | Maybe | Single | Box | Rc | Arc | Cow | Ref | RefCell | Mutex | RwLock | Lazy
                | Promise | Future | Task | Deferred | CompletableFuture | Flow | StateFlow | LiveData | State | MutableState | Stream
                | Observable | Mono | Flux | Publisher | Supplier | Provider | Consumer | Function | Func | Action | Callback | Continuation
                | Pair | Class | KClass | Type | Span | ReadOnlySpan | Memory | ReadOnlyMemory | Secret | SecretBox | Zeroizing | Partial )
              < [A-Za-z0-9_.,:?!&*<>()\[\]{}'-]* $",
        )
    });
    /// Names of types that are secrets elsewhere, so they are types only as parameters. Types that are not in this list are scrubbed: they
    /// look like a person's secret, such as `CorrectHorse`.
    static PARAMETER: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"(?x) ^ [(&*@]* (?: [a-z_][A-Za-z0-9_]* (?: \. | :: ) )*
              (?: (?:Cancellation|Cancel|Access|Auth|Refresh|Id|JsonWeb|JsonWebSecurity|Security|Device)? Token
                | (?:Secure|Secret|Protected|Static)String | (?:Secret|Private|Public|Api|Signing|Symmetric|Crypto|JsonWeb)Key | SecKey
                | Secret | Password | Passphrase | Credentials? | Cookie | Jwt | JWT | I?Binder | Uuid | UUID | Guid | GUID | NSUUID
                | Self | Bytes | BytesMut | (?:Byte|String|Char)?Buffer | Uint8Array | ArrayBuffer | NSData | IntPtr | OsString | OsStr
                | CStr | CString | PathBuf | Path | Url | URL | Uri | URI | URLSearchParams | InputStream | JsonNode | JsonValue | JSONObject )
              [?!*)>\]}]* $",
        )
    });
    // Looks once, also for a chain of types: `string|null`.
    let is_parameter = LazyCell::new(|| separator == ':' && is_in(before, b'(', b')'));
    text.split('|').all(|one| {
        LITERAL.is_match(one)
            || TYPE.is_match(one)
            || OBJECT.is_match(one)
            || GENERIC.is_match(one)
            || (PARAMETER.is_match(one) && *is_parameter)
    })
}

/// Whether the text after `password: ` is an array of types: `[u8; 32]`, `[String: Any]`.
pub(super) fn is_array(before: &str, separator: char, text: &str) -> bool {
    /// The text of an array of Java, and what follows it.
    static ARRAY: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^[BCSIJFDZ]@[0-9a-f]{1,8}(?:[,;&)}].*|\s+[A-Za-z_]+[=:].*)?$"));
    let inner = text.trim_start_matches('[').trim_end_matches(']');
    if ARRAY.is_match(inner) {
        return true;
    }
    let (elements, length) = inner.split_once(';').unwrap_or((inner, ""));
    let of_length = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let mut elements = elements.split([':', ',']);
    length.trim().chars().all(of_length)
        && elements.all(|one| is_type(before, separator, one.trim()))
}

/// Whether the last parenthesis or bracket of a text is open.
fn is_in(before: &str, open: u8, close: u8) -> bool {
    let mut near = before.bytes().rev().take(NEAR);
    near.find(|byte| [open, close].contains(byte)) == Some(open)
}

/// Whether the text after `password:` is the rest of a function's labels: `completion:)` of `login(user:password:completion:)`.
pub(super) fn is_label(before: &str, text: &str) -> bool {
    static LABELS: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^(?:[A-Za-z_][A-Za-z0-9_]*:)*[)\]](?:[.(]|$)"));
    (is_in(before, b'(', b')') || is_in(before, b'[', b']')) && LABELS.is_match(text)
}

/// Whether `pass` or `pwd` ends another word: `compass: north`, `renderPass: Opaque`, `OLDPWD=/home`. `name` is the text up to the value.
pub(super) fn is_other_pass(name: &str) -> bool {
    static OTHER: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"^(?i:(?:(?:[a-z0-9_-]*[_-])?(?:all|band|by|com|encom|high|low|multi|over|pre|single|sub|sur|tres|under)|[a-z0-9_-]*(?:compute|render|shader))pass|oldpwd)\b",
        )
    });
    OTHER.is_match(name)
}

/// Whether the text after `Unexpected token: ` is the kind of token in the message of a parser.
pub(super) fn is_kind(text: &str) -> bool {
    static KIND: LazyLock<Regex> = LazyLock::new(|| regex(r"^(?:[a-z]+|[A-Z]+(?:_[A-Z]+)*)\W*$"));
    KIND.is_match(text)
}

/// Whether the text after `fetchToken: ` says what happened, or after `JsonToken: ` which token a parser read. `name` is the text up to the
/// value.
pub(super) fn is_state(name: &str, text: &str) -> bool {
    static STATE: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"(?x) ^ (?: absent | attempt | begin | cached | called | cancel+ed | changed | cleared | completed? | created | deleted | denied
                | disabled | done | empty | enabled | ended | error | exit | expired | fail(?:ed|ure|s)? | fetched | fetching | finished
                | forbidden | found | generated | ignored | incorrect | invalid | loaded | loading | missing | mismatch | none | pending
                | present | received | refreshed | refreshing | registered | rejected | removed | requested | required | retrying
                | returned | revoked | rotated | saved | sent | skipped | stale | start(?:ed|ing) | stored | succe(?:ss|eded)
                | timeout | took | unauthorized | unchanged | unknown | unset | updated | valid | waiting | HTTP(?:/[0-9.]+)?
                | (?: [a-z][a-z0-9_]* \. )* [A-Z][A-Za-z]* (?:Error|Exception) :? ) [.!)\]}]* $",
        )
    });
    static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"^(?:(?:BEGIN|START|END)_(?:ARRAY|DOCUMENT|OBJECT)|FIELD_NAME|PROPERTY_NAME|VALUE_[A-Z_]+|NOT_AVAILABLE|NAME|STRING|NUMBER|BOOLEAN)\W*$",
        )
    });
    let (name, separator) = name.split_at(name.find([':', '=']).unwrap_or(name.len()));
    let name = name.trim_end().to_ascii_lowercase();
    (separator == ": " && STATE.is_match(text)) || (name.ends_with("token") && TOKEN.is_match(text))
}

/// Whether a text is a measured time, share or size: `3.2ms` of `shadowPass: 3.2ms`, `3.25` before ` ms`, `2048x2048`.
pub(super) fn is_measure(text: &str, after: &str) -> bool {
    static MEASURE: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"^(?:[0-9]{1,6}(?:\.[0-9]{1,9})?(?:ns|us|µs|μs|ms|fps|%)|[0-9]{1,4}\.[0-9]{1,9}s|[0-9]{2,5}x[0-9]{2,5})[.)\]}]*$",
        )
    });
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| regex(r"^[0-9]{1,6}(?:\.[0-9]{1,9})?$"));
    static UNIT: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"^ (?:ns|us|µs|μs|ms|fps|[KM]i?B|bytes|draws?|draw calls|calls|tri(?:angle)?s|vert(?:ice)?s|lights|objects)\b",
        )
    });
    MEASURE.is_match(text) || (NUMBER.is_match(text) && UNIT.is_match(after))
}

/// Whether what looks like a query is code: a comparison such as `cart?b==c`, or a part of a file of a component.
pub(super) fn is_code(query: &str) -> bool {
    let is_comparison = || {
        query
            .split_once('=')
            .is_some_and(|(_, value)| value.starts_with('='))
    };
    let is_part = ["?vue&type=", "?svelte&type=", "?astro&type="]
        .iter()
        .any(|part| query.starts_with(part));
    is_part || is_comparison()
}
