//! The files that wait to be joined. Projects take turns, and the tokens of a project do, so one caller delays the files of another by
//! one file at most.

use std::collections::{HashMap, VecDeque};

use super::assembly_request::AssemblyRequest;

/// The maximum number of chunks of all waiting files. Remembering a chunk takes 64 bytes of memory.
const MAX_CHUNKS: usize = 1 << 16;
/// The maximum number of chunks of the waiting files of one project, whatever the number of its tokens.
const MAX_CHUNKS_OF_PROJECT: usize = MAX_CHUNKS / 2;
/// The maximum number of chunks of the waiting files of one token.
const MAX_CHUNKS_OF_TOKEN: usize = MAX_CHUNKS / 4;

/// Too many files wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

#[derive(Default)]
pub(super) struct Waiting {
    /// By project, and in it by token. The front of each is next.
    projects: VecDeque<(String, Tokens)>,
    /// The number of chunks by token.
    chunks: HashMap<String, usize>,
}

type Tokens = VecDeque<(String, VecDeque<AssemblyRequest>)>;

impl Waiting {
    pub(super) fn add(&mut self, request: AssemblyRequest) -> Result<(), Full> {
        let more = weight(&request);
        let all: usize = self.chunks.values().sum();
        let of_project = self.of_project(&request.project).map(weight).sum::<usize>();
        let own = self.chunks.entry(request.owner().to_owned()).or_default();
        if all + more > MAX_CHUNKS
            || of_project + more > MAX_CHUNKS_OF_PROJECT
            || *own + more > MAX_CHUNKS_OF_TOKEN
        {
            return Err(Full);
        }
        *own += more;
        let tokens = part(&mut self.projects, &request.project);
        part(tokens, request.owner()).push_back(request);
        Ok(())
    }

    /// Removes the next file. Its project and its token go to the end of their queues.
    pub(super) fn next(&mut self) -> Option<AssemblyRequest> {
        let (project, mut tokens) = self.projects.pop_front()?;
        let (owner, mut requests) = tokens.pop_front()?;
        let request = requests.pop_front()?;
        if !requests.is_empty() {
            tokens.push_back((owner, requests));
        }
        if !tokens.is_empty() {
            self.projects.push_back((project, tokens));
        }
        if let Some(own) = self.chunks.get_mut(request.owner()) {
            *own = own.saturating_sub(weight(&request));
            if *own == 0 {
                self.chunks.remove(request.owner());
            }
        }
        Some(request)
    }

    fn of_project(&self, name: &str) -> impl Iterator<Item = &AssemblyRequest> {
        let project = self.projects.iter().find(|(project, _)| project == name);
        let tokens = project.into_iter().flat_map(|(_, tokens)| tokens);
        tokens.flat_map(|(_, requests)| requests)
    }

    /// Returns the requests of a token.
    pub(super) fn of(&self, owner: &str) -> impl Iterator<Item = &AssemblyRequest> {
        let tokens = self.projects.iter().flat_map(|(_, tokens)| tokens);
        let own = tokens.filter(move |(name, _)| name == owner);
        own.flat_map(|(_, requests)| requests)
    }
}

fn weight(request: &AssemblyRequest) -> usize {
    request.chunks.len().max(1)
}

/// Returns the part of a queue with this name. Adds an empty one at the end if there is none.
fn part<'q, T: Default>(queue: &'q mut VecDeque<(String, T)>, name: &str) -> &'q mut T {
    let at = queue.iter().position(|(other, _)| other == name);
    let at = at.unwrap_or_else(|| {
        queue.push_back((name.to_owned(), T::default()));
        queue.len() - 1
    });
    &mut queue[at].1
}

#[cfg(test)]
mod tests {
    use unjank_database::Actor;

    use super::*;

    fn request(project: &str, owner: &str, checksum: &str, chunks: usize) -> AssemblyRequest {
        AssemblyRequest {
            project: project.to_owned(),
            actor: Actor::system(owner),
            checksum: checksum.to_owned(),
            name: String::new(),
            chunks: vec![String::new(); chunks],
            id: None,
        }
    }

    #[test]
    fn projects_and_their_tokens_take_turns() {
        let mut waiting = Waiting::default();
        for checksum in ["1", "2", "3"] {
            waiting.add(request("shop", "a", checksum, 1)).unwrap();
        }
        waiting.add(request("shop", "b", "4", 1)).unwrap();
        waiting.add(request("bank", "c", "5", 1)).unwrap();
        let order: Vec<String> = std::iter::from_fn(|| waiting.next())
            .map(|request| request.checksum)
            .collect();
        assert_eq!(order, ["1", "5", "4", "2", "3"]);
        assert!(waiting.projects.is_empty() && waiting.chunks.is_empty());
    }

    #[test]
    fn one_token_cannot_fill_the_queue() {
        let mut waiting = Waiting::default();
        while waiting.add(request("shop", "a", "1", 1 << 10)).is_ok() {}
        assert_eq!(waiting.of("a").count(), 16);
        assert_eq!(waiting.add(request("shop", "b", "2", 1)), Ok(()));
        assert_eq!(waiting.add(request("bank", "a", "3", 1)), Err(Full));
        while waiting.next().is_some() {}
        assert_eq!(waiting.add(request("bank", "a", "3", 1)), Ok(()));
    }

    #[test]
    fn all_tokens_together_are_limited() {
        let mut waiting = Waiting::default();
        for (project, owner) in [("shop", "a"), ("shop", "b"), ("bank", "c"), ("bank", "d")] {
            while waiting.add(request(project, owner, "1", 1 << 10)).is_ok() {}
        }
        assert_eq!(waiting.add(request("club", "e", "2", 1)), Err(Full));
    }

    #[test]
    fn the_tokens_of_one_project_cannot_fill_the_queue() {
        let mut waiting = Waiting::default();
        for owner in ["a", "b", "c"] {
            while waiting.add(request("shop", owner, "1", 1 << 10)).is_ok() {}
        }
        assert_eq!(waiting.of_project("shop").count(), 32);
        assert_eq!(waiting.add(request("bank", "d", "2", 1)), Ok(()));
    }
}
