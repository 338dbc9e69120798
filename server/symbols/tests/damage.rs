//! A damaged lookup file must not stop a server: it is refused when it is opened.

use unjank_symbols::{LookupFile, LookupKind, convert};

const MAPPING: &str = r#"# {"id":"com.android.tools.r8.mapping","version":"2.2"}
outline.Class -> a:
    1:2:int outline():0 -> a
    # {"id":"com.android.tools.r8.outline"}
shop.Cart -> b:
# {"id":"sourceFile","fileName":"Cart.kt"}
    4:4:void shop.Price.round(int):23:25 -> s
    4:4:void pay(shop.Price):98 -> s
    # {"id":"com.android.tools.r8.rewriteFrame","conditions":["throws(Lc;)"],"actions":["removeInnerFrames(1)"]}
    27:27:void pay(shop.Price):0:0 -> s
    # {"id":"com.android.tools.r8.outlineCallsite","positions":{"1":4},"outline":"La;a()I"}
"#;

const BREAKPAD: &str = "\
MODULE Linux x86_64 492E2DD23CC306CA9C494EEF1533A3810 shop
FILE 0 src/cart.cc
FILE 1 src/price.cc
INLINE_ORIGIN 0 shop::Price::round(int)
FUNC 1000 20 0 shop::Cart::pay(int)
INLINE 0 12 0 0 1008 8
1000 8 10 0
1008 8 30 1
1010 10 13 0
";

const SOURCE_MAP: &str = r#"{"version":3,"debugId":"67e9247c-814e-392b-a027-dbde6748fcbf","sources":["src/cart.js"],
"sourcesContent":["function pay(price){}"],"names":["pay","price"],"mappings":"SAASA,EAAIC;AACA"}"#;

#[test]
fn damaged_lookup_files_are_refused() {
    let files = [
        (MAPPING, LookupKind::Java),
        (BREAKPAD, LookupKind::Native),
        (SOURCE_MAP, LookupKind::JavaScript),
    ];
    for (file, kind) in files {
        let mut converted = Vec::new();
        convert(file.as_bytes(), 0, &mut converted).unwrap();
        assert!(LookupFile::from_bytes(&converted, kind).is_ok());
        for length in 0..converted.len() {
            let opened = LookupFile::from_bytes(&converted[..length], kind);
            assert!(opened.is_err(), "{kind:?} cut off at {length}");
        }
        for place in 0..converted.len() {
            let mut damaged = converted.clone();
            damaged[place] ^= 0x40;
            let opened = LookupFile::from_bytes(&damaged, kind);
            assert!(opened.is_err(), "{kind:?} damaged at {place}");
        }
    }
}

#[test]
fn a_lookup_file_on_the_disk_is_checked_when_it_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lookup");
    let mut converted = Vec::new();
    convert(MAPPING.as_bytes(), 0, &mut converted).unwrap();
    std::fs::write(&path, &converted).unwrap();
    assert!(LookupFile::open(&path, LookupKind::Java).is_ok());
    // Zeros, as a file system can leave them after a power cut.
    let middle = converted.len() / 2;
    converted[middle..].fill(0);
    std::fs::write(&path, &converted).unwrap();
    assert!(LookupFile::open(&path, LookupKind::Java).is_err());
    std::fs::write(&path, []).unwrap();
    assert!(LookupFile::open(&path, LookupKind::Java).is_err());
}
