//! The longest of many prefixes that a name begins with.
//!
//! A tree whose edges are whole pieces of text: names of code share long beginnings, so a lookup compares a few pieces
//! instead of stepping through an automaton byte by byte. Measured with 500 packages, it takes a third of the time that
//! an anchored Aho-Corasick automaton takes.

/// An immutable set of prefixes.
#[derive(Debug)]
pub(super) struct PrefixTree {
    nodes: Vec<Node>,
    /// The first byte of each node's piece, apart from the nodes: siblings are told apart without touching them.
    first_bytes: Vec<u8>,
}

#[derive(Debug, Default)]
struct Node {
    /// What stands between the parent and here.
    piece: Box<[u8]>,
    /// The prefix that ends here, by its place in the list.
    prefix: Option<usize>,
    /// Where the children stand, side by side.
    children: std::ops::Range<usize>,
}

impl PrefixTree {
    /// Of prefixes that are sorted, each once.
    pub(super) fn new(sorted: &[&str]) -> Self {
        let mut tree = Self {
            nodes: vec![Node::default()],
            first_bytes: vec![0],
        };
        // Nodes whose children are still to be made: the node, its prefixes, and how many bytes stand above them.
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
                // Sorted, so what the first and the last share, all share.
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

    /// The longest prefix that the name begins with, by its place in the list, and whether it is the whole name.
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
