//! Interns names that many events share, such as pages and threads.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use unjank_monitors::bounded;

/// Maximum number of names. Any further one becomes the empty name, so that names with ids in them cannot exhaust the app's
/// memory.
const MOST: usize = 4_096;

/// An interned name; the default is the empty one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NameId(pub(crate) u32);

#[derive(Debug)]
pub(crate) struct Names(RwLock<Table>);

#[derive(Debug)]
struct Table {
    names: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, u32>,
}

impl Default for Names {
    fn default() -> Self {
        let empty: Arc<str> = Arc::from("");
        Self(RwLock::new(Table {
            names: vec![Arc::clone(&empty)],
            ids: HashMap::from([(empty, 0)]),
        }))
    }
}

impl Names {
    pub(crate) fn id(&self, name: &str) -> NameId {
        let name = bounded(name);
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = table.ids.get(name) {
            return NameId(*id);
        }
        drop(table);
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = table.ids.get(name) {
            return NameId(*id);
        }
        let Some(id) = u32::try_from(table.names.len())
            .ok()
            .filter(|_| table.names.len() < MOST)
        else {
            return NameId::default();
        };
        let name: Arc<str> = Arc::from(name);
        table.names.push(Arc::clone(&name));
        table.ids.insert(name, id);
        NameId(id)
    }

    pub(crate) fn name(&self, id: NameId) -> Arc<str> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let name = usize::try_from(id.0)
            .ok()
            .and_then(|at| table.names.get(at));
        name.map_or_else(|| Arc::from(""), Arc::clone)
    }
}

/// Names as a thread last saw them, for a lookup without a lock.
#[derive(Debug, Default)]
pub(crate) struct KnownNames(Vec<Arc<str>>);

impl KnownNames {
    /// Returns some of the names.
    pub(crate) fn of<const COUNT: usize>(
        &mut self,
        names: &Names,
        ids: [NameId; COUNT],
    ) -> [&str; COUNT] {
        let places = ids.map(|NameId(id)| usize::try_from(id).unwrap_or_default());
        if places.iter().any(|place| *place >= self.0.len()) {
            let table = names.0.read().unwrap_or_else(PoisonError::into_inner);
            let new = table.names.get(self.0.len()..).unwrap_or_default();
            self.0.extend_from_slice(new);
        }
        places.map(|place| self.0.get(place).map_or("", |name| &**name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_interned_once_and_the_number_of_names_is_limited() {
        let names = Names::default();
        let feed = names.id("Feed");
        assert_eq!(names.id("Feed"), feed);
        assert_eq!(&*names.name(feed), "Feed");
        assert_eq!(names.id(""), NameId::default());
        assert_eq!(names.name(names.id(&"a".repeat(2_000))).len(), 1_024);
        for number in 0..MOST {
            names.id(&number.to_string());
        }
        assert_eq!(names.id("one more"), NameId::default());
        let mut known = KnownNames::default();
        assert_eq!(known.of(&names, [feed, NameId::default()]), ["Feed", ""]);
        assert_eq!(known.of(&names, [names.id("7")]), ["7"]);
        assert_eq!(names.id("Feed"), feed);
    }
}
