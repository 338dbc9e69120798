//! The modules of the process, and the data about those that occurred in stacks.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use framehop::{CacheNative, MayAllocateDuringUnwind, Module, Unwinder, UnwinderNative};

use super::image::Image;
use super::maps::{self, Mapping};
use super::registers::Registers;
use super::symbols::Symbols;
use crate::RawFrame;

type NativeUnwinder = UnwinderNative<Vec<u8>, MayAllocateDuringUnwind>;
type NativeCache = CacheNative<MayAllocateDuringUnwind>;

/// Maximum number of return addresses that are cached.
const MAX_TRAMPOLINES: usize = 4096;

/// All executable mappings, and the unwinder with the ones in use.
pub(super) struct Modules {
    /// By address.
    mapped: Vec<Mapped>,
    unwinder: NativeUnwinder,
    cache: NativeCache,
    /// Return addresses that were checked, and whether signal handlers return to them.
    trampolines: HashMap<u64, bool>,
    no_text: Arc<str>,
}

struct Mapped {
    mapping: Mapping,
    /// `None` until an address in it occurs.
    seen: Option<Seen>,
}

struct Seen {
    name: Arc<str>,
    /// `None` if the file is missing or does not match the mapping.
    image: Option<(Image, Symbols)>,
}

impl Modules {
    pub(super) fn new() -> Self {
        Self {
            mapped: Vec::new(),
            unwinder: NativeUnwinder::new(),
            cache: NativeCache::new(),
            trampolines: HashMap::new(),
            no_text: "".into(),
        }
    }

    /// Updates the list of modules after loads and unloads. Keeps the data about modules that are still mapped.
    pub(super) fn refresh(&mut self) {
        let Some(now) = maps::executable() else {
            return;
        };
        let same = self.mapped.len() == now.len()
            && self.mapped.iter().zip(&now).all(|(a, b)| a.mapping == *b);
        if same {
            return;
        }
        self.trampolines.clear();
        let mut before = std::mem::take(&mut self.mapped).into_iter().peekable();
        for mapping in now {
            while before
                .peek()
                .is_some_and(|one| one.mapping.start < mapping.start)
            {
                self.forget(before.next());
            }
            let kept = before.next_if(|one| one.mapping == mapping);
            self.mapped.push(kept.unwrap_or(Mapped {
                mapping,
                seen: None,
            }));
        }
        for gone in before {
            self.forget(Some(gone));
        }
    }

    fn forget(&mut self, gone: Option<Mapped>) {
        if let Some(Mapped {
            mapping,
            seen: Some(_),
        }) = gone
        {
            self.unwinder.remove_module(mapping.start);
        }
    }

    /// Returns the frame of the code at `address`, and adds the module to the unwinder.
    pub(super) fn frame(&mut self, address: u64) -> RawFrame {
        let mut frame = RawFrame {
            address,
            module: Arc::clone(&self.no_text),
            build_id: Arc::clone(&self.no_text),
            offset: None,
            function: None,
        };
        let after = self
            .mapped
            .partition_point(|one| one.mapping.start <= address);
        let found = after
            .checked_sub(1)
            .and_then(|index| self.mapped.get_mut(index))
            .filter(|one| address < one.mapping.end);
        let Some(Mapped { mapping, seen }) = found else {
            return frame;
        };
        let seen = seen.get_or_insert_with(|| see(mapping, &mut self.unwinder));
        frame.module = Arc::clone(&seen.name);
        if let Some((image, symbols)) = &mut seen.image {
            let offset = address.wrapping_sub(image.base);
            frame.build_id = Arc::clone(&image.build_id);
            frame.offset = Some(offset);
            frame.function = symbols.name(image, offset);
        }
        frame
    }

    /// Returns whether signal handlers return to the code at `address`. The unwinder does not support the unwind tables that
    /// describe it.
    pub(super) fn is_trampoline(&mut self, address: u64) -> bool {
        if self.trampolines.len() >= MAX_TRAMPOLINES {
            self.trampolines.clear();
        }
        let known = self.trampolines.entry(address);
        *known.or_insert_with(|| {
            let mut code = [0; Registers::TRAMPOLINE.len()];
            let memory = File::open("/proc/self/mem");
            memory.is_ok_and(|memory| memory.read_exact_at(&mut code, address).is_ok())
                && code == Registers::TRAMPOLINE
        })
    }

    /// Returns whether a file's code is mapped at `address`.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn is_code(&self, address: u64) -> bool {
        self.mapped_at(address).is_some()
    }

    /// Returns the start of the function at `address`, if its module was added by [`Self::frame`].
    #[cfg(target_arch = "x86_64")]
    pub(super) fn function_start(&self, memory: &File, address: u64) -> Option<u64> {
        let (image, _) = self.mapped_at(address)?.seen.as_ref()?.image.as_ref()?;
        image.function_table.as_ref()?.start(memory, address)
    }

    #[cfg(target_arch = "x86_64")]
    fn mapped_at(&self, address: u64) -> Option<&Mapped> {
        let after = self
            .mapped
            .partition_point(|one| one.mapping.start <= address);
        let found = self.mapped.get(after.checked_sub(1)?)?;
        (address < found.mapping.end).then_some(found)
    }

    /// Returns the highest address of any module's code.
    pub(super) fn highest_address(&self) -> u64 {
        self.mapped.last().map_or(0, |one| one.mapping.end)
    }

    /// Returns the unwinder for one frame whose module was added by [`Self::frame`].
    pub(super) fn unwinder(&mut self) -> (&NativeUnwinder, &mut NativeCache) {
        (&self.unwinder, &mut self.cache)
    }
}

/// Reads the data about a module that occurs for the first time.
fn see(mapping: &Mapping, unwinder: &mut NativeUnwinder) -> Seen {
    let path = mapping.path.trim_end_matches(" (deleted)");
    let name: Arc<str> = path.rsplit('/').next().unwrap_or(path).into();
    let image = Image::read(mapping).map(|(image, tables)| {
        let range = mapping.start..mapping.end;
        unwinder.add_module(Module::new(name.to_string(), range, image.base, tables));
        let symbols = Symbols::read(&image);
        (image, symbols)
    });
    Seen { name, image }
}
