//! Turns the frames that devices report into functions and lines.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use unjank_protocol::{Frame, Text};
use unjank_stacks::SymbolNeed;
use unjank_symbols::{JavaFrame, Location, LookupFile, LookupKind, Origin, SymbolId};

use super::alternatives::one_of;
use super::lookups::{LookupError, Lookups};

/// The maximum number of frames of a readable stack: twice what devices may send, because inlined functions become frames.
const MAX_FRAMES: usize = 256;

/// Lookup files of this size in total are open for one batch of stacks. Their pages count as memory of the process while they are mapped.
const MAX_BATCH_BYTES: usize = 64 << 20;

/// A stack after symbolication.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadableStack {
    /// Innermost first. Empty if symbols added nothing, so that the reported frames are kept.
    pub frames: Vec<Frame<'static>>,
    /// How each frame follows from a reported one: 0 reported as it is, 1 called, 2 inlined, 3 ambiguous.
    pub origins: Vec<u8>,
    /// The ids of all builds whose symbols the stack needs.
    pub ids: Vec<String>,
    /// Those for which there is no file, although their frames have no name.
    pub missing: Vec<String>,
    /// Those whose file has none of the frames, so that it belongs to another build.
    pub mismatched: Vec<String>,
}

/// Returns the function of a readable stack that had one reported frame, or `None` if symbols added nothing.
#[must_use]
pub fn named_function(frames: &[Frame<'static>]) -> Option<Frame<'static>> {
    // R8 may have given several functions one name. Then the name lists all of them.
    let mut functions: Vec<&str> = frames.iter().map(|frame| &*frame.function).collect();
    functions.dedup();
    let function = Text::from(functions.join(" or "));
    let first = frames.first()?.clone();
    Some(Frame { function, ..first })
}

pub struct Symbolicator {
    pub lookups: Arc<Lookups>,
}

type Files = HashMap<SymbolId, Option<Arc<LookupFile>>>;

impl Symbolicator {
    /// Symbolicates stacks of a project. `revision` is that of the project's symbol files.
    pub async fn symbolicate(
        &self,
        project: &str,
        revision: u64,
        stacks: Vec<Vec<Frame<'static>>>,
    ) -> Result<Vec<ReadableStack>, LookupError> {
        let stacks = Arc::new(stacks);
        let mut readable = vec![ReadableStack::default(); stacks.len()];
        // Stacks of one build follow each other, so that few files are open at once.
        let first_need = |(_, stack): &(usize, &Vec<Frame<'static>>)| {
            let mut needs = stack.iter().filter_map(SymbolNeed::of);
            needs.next().map(|need| need.id)
        };
        let mut order: Vec<_> = stacks.iter().enumerate().collect();
        order.sort_by_cached_key(first_need);
        let mut batch = Batch::default();
        for (place, stack) in order {
            for need in stack.iter().filter_map(SymbolNeed::of) {
                batch
                    .find(need.id, (&self.lookups, project, revision))
                    .await?;
            }
            batch.places.push(place);
            if batch.bytes > MAX_BATCH_BYTES {
                std::mem::take(&mut batch)
                    .run(&stacks, &mut readable)
                    .await?;
            }
        }
        batch.run(&stacks, &mut readable).await?;
        Ok(readable)
    }
}

/// Stacks that are symbolicated together, and the lookup files that they need.
#[derive(Default)]
struct Batch {
    places: Vec<usize>,
    files: Files,
    bytes: usize,
}

impl Batch {
    /// Opens the lookup file of a build, unless it is open.
    async fn find(
        &mut self,
        id: SymbolId,
        (lookups, project, revision): (&Arc<Lookups>, &str, u64),
    ) -> Result<(), LookupError> {
        if let Entry::Vacant(new) = self.files.entry(id) {
            let file = lookups.find(project, new.key(), revision).await?;
            self.bytes += file.as_ref().map_or(0, |file| file.size());
            new.insert(file);
        }
        Ok(())
    }

    async fn run(
        self,
        stacks: &Arc<Vec<Vec<Frame<'static>>>>,
        readable: &mut [ReadableStack],
    ) -> Result<(), LookupError> {
        let stacks = Arc::clone(stacks);
        let work = move || -> Vec<(usize, ReadableStack)> {
            let stack = |place: usize| Some((place, symbolicate(&self.files, stacks.get(place)?)));
            self.places.into_iter().filter_map(stack).collect()
        };
        let done = tokio::task::spawn_blocking(work).await;
        for (place, stack) in done.map_err(|error| LookupError::Panicked(error.to_string()))? {
            if let Some(readable) = readable.get_mut(place) {
                *readable = stack;
            }
        }
        Ok(())
    }
}

fn symbolicate(files: &Files, stack: &[Frame<'static>]) -> ReadableStack {
    let needs: Vec<Option<SymbolNeed>> = stack.iter().map(SymbolNeed::of).collect();
    let mut readable = ReadableStack::default();
    let (mut ids, mut missing) = (BTreeSet::new(), BTreeSet::new());
    // By id with a file: whether the file has any of the frames.
    let mut matches: BTreeMap<&SymbolId, bool> = BTreeMap::new();
    let mut place = 0;
    while let Some(frame) = stack.get(place) {
        let need = needs.get(place).and_then(Option::as_ref);
        let file = need.and_then(|need| {
            ids.insert(need.id.as_str().to_owned());
            let file = files.get(&need.id)?.as_ref()?;
            (file.kind() == need.kind).then_some(file)
        });
        let Some((need, file)) = need.zip(file) else {
            if let Some(need) = need.filter(|_| is_nameless(frame)) {
                missing.insert(need.id.as_str().to_owned());
            }
            readable.report(frame);
            place += 1;
            continue;
        };
        // Frames of one mapping belong together: R8 moves code into functions of its own, whose callers have the lines.
        let group = match need.kind {
            LookupKind::Java => needs[place..]
                .iter()
                .take_while(|other| other.as_ref() == Some(need))
                .count(),
            _ => 1,
        };
        let frames = &stack[place..place + group];
        let is_match = matches.entry(&need.id).or_default();
        for (frame, locations) in frames.iter().zip(locate(file, frames)) {
            match locations {
                Some(locations) => {
                    *is_match = true;
                    readable.locate(frame, &locations);
                }
                None => readable.report(frame),
            }
        }
        place += group;
    }
    readable.ids = ids.into_iter().collect();
    readable.missing = missing.into_iter().collect();
    let is_better = matches.values().any(|is_match| *is_match);
    let mismatched = matches.into_iter().filter(|(_, is_match)| !is_match);
    readable.mismatched = mismatched.map(|(id, _)| id.as_str().to_owned()).collect();
    if !is_better {
        readable.frames.clear();
        readable.origins.clear();
    }
    readable
}

/// Whether only symbols can name the function: a native frame without one, or any frame of an obfuscated app or a minified script.
fn is_nameless(frame: &Frame<'_>) -> bool {
    frame.function.is_empty() || !frame.class.is_empty() || frame.column > 0
}

fn locate(file: &LookupFile, frames: &[Frame<'static>]) -> Vec<Option<Vec<Location>>> {
    match file.kind() {
        LookupKind::Java => {
            let frames: Vec<JavaFrame<'_>> = frames.iter().map(java_frame).collect();
            file.java(&frames, None)
        }
        LookupKind::Native => {
            let native = |frame: &Frame<'_>| {
                let locations = file.native(frame.offset?);
                (!locations.is_empty()).then_some(locations)
            };
            frames.iter().map(native).collect()
        }
        LookupKind::JavaScript => {
            let script = |frame: &Frame<'_>| {
                let location = file.java_script(line(frame), frame.column, &frame.function);
                location.map(|location| vec![location])
            };
            frames.iter().map(script).collect()
        }
    }
}

fn java_frame<'f>(frame: &'f Frame<'_>) -> JavaFrame<'f> {
    JavaFrame {
        class: &frame.class,
        // A span may have the signature, too.
        function: frame.function.split('(').next().unwrap_or_default(),
        file: &frame.file,
        line: line(frame),
    }
}

fn line(frame: &Frame<'_>) -> u32 {
    u32::try_from(frame.line).unwrap_or_default()
}

impl ReadableStack {
    fn report(&mut self, frame: &Frame<'static>) {
        self.add(frame.clone(), 0);
    }

    fn locate(&mut self, reported: &Frame<'static>, locations: &[Location]) {
        for alternatives in locations.chunk_by(|_, next| next.alternative > 0) {
            if let Some(location) = one_of(alternatives) {
                self.push(reported, location);
            }
        }
    }

    fn push(&mut self, reported: &Frame<'static>, location: Location) {
        let origin = match location.origin {
            Origin::Called => 1,
            Origin::Inlined => 2,
            Origin::Ambiguous => 3,
        };
        let frame = Frame {
            class: location.class.into(),
            function: location.function.into(),
            file: location.file.into(),
            line: i64::from(location.line),
            module: reported.module.clone(),
            build_id: reported.build_id.clone(),
            offset: reported.offset,
            native: reported.native,
            ..Frame::default()
        };
        self.add(frame, origin);
    }

    fn add(&mut self, frame: Frame<'static>, origin: u8) {
        if self.frames.len() < MAX_FRAMES {
            self.frames.push(frame);
            self.origins.push(origin);
        }
    }
}
