//! The chunks that owners have sent, listed once for a whole request: a request may name thousands of chunks.

use std::collections::{BTreeSet, HashMap};

use super::store::{StoreError, SymbolStore};

/// The sizes of chunks by their SHA-1, by owner.
#[derive(Default)]
pub(super) struct SentChunks(HashMap<String, HashMap<String, u64>>);

impl SentChunks {
    /// Returns those of the chunks that the owner has not sent, each once.
    pub(super) async fn missing(
        &mut self,
        store: &SymbolStore,
        owner: &str,
        chunks: &[String],
    ) -> Result<Vec<String>, StoreError> {
        if !self.0.contains_key(owner) {
            let sent = store.chunks_of(owner).await?;
            self.0.insert(owner.to_owned(), sent);
        }
        let sent = self.0.get(owner);
        let mut seen = BTreeSet::new();
        let missing = chunks.iter().filter(|chunk| {
            let is_sent = sent.is_some_and(|sent| sent.contains_key(chunk.as_str()));
            !is_sent && seen.insert(chunk.as_str())
        });
        Ok(missing.cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[tokio::test]
    async fn one_list_answers_for_all_files_of_a_request() {
        let folder = tempfile::tempdir().unwrap();
        let store = SymbolStore::folder(folder.path()).unwrap();
        let [sent, other, late] = ["a", "b", "c"].map(|digit| digit.repeat(40));
        for (owner, chunk) in [("token", &sent), ("other token", &other)] {
            let content = Bytes::from_static(b"chunk");
            store.put_chunk(owner, chunk, content).await.unwrap();
        }

        let mut chunks = SentChunks::default();
        let wanted = [&late, &sent, &other, &late].map(Clone::clone);
        let missing = chunks.missing(&store, "token", &wanted).await.unwrap();
        assert_eq!(missing, [late.clone(), other.clone()]);
        let content = Bytes::from_static(b"chunk");
        store.put_chunk("token", &late, content).await.unwrap();
        let missing = chunks.missing(&store, "token", &wanted).await.unwrap();
        assert_eq!(missing, [late, other], "the store was listed again");
    }
}
