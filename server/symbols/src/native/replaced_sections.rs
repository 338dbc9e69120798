//! A file some of whose sections are replaced.

use std::borrow::Cow;
use std::collections::BTreeMap;

use gimli::RunTimeEndian;
use symbolic::debuginfo::dwarf::{Dwarf, DwarfSection};

pub(super) struct Replaced<'p, P> {
    pub(super) file: &'p P,
    /// By their names without the dot.
    pub(super) sections: BTreeMap<&'static str, Vec<u8>>,
}

impl<'d, P: Dwarf<'d>> Dwarf<'d> for Replaced<'_, P> {
    fn endianity(&self) -> RunTimeEndian {
        self.file.endianity()
    }

    fn raw_section(&self, name: &str) -> Option<DwarfSection<'d>> {
        self.section(name)
    }

    fn section(&self, name: &str) -> Option<DwarfSection<'d>> {
        let Some(replaced) = self.sections.get(name) else {
            return self.file.section(name);
        };
        Some(DwarfSection {
            address: 0,
            offset: 0,
            align: 1,
            data: Cow::Owned(replaced.clone()),
        })
    }
}
