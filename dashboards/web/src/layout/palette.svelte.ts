// Whether the command palette is open. The script of the palette loads on first use.

let isOpen = $state(false);

export const palette = {
  get isOpen() {
    return isOpen;
  },
  open() {
    isOpen = true;
  },
  close() {
    isOpen = false;
  },
};

/** The keys that open the palette, as text. */
export const PALETTE_KEYS = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘K' : 'Ctrl K';

export function isPaletteKey({ key, ctrlKey, metaKey, shiftKey, altKey }: KeyboardEvent): boolean {
  return key.toLowerCase() === 'k' && (ctrlKey || metaKey) && !shiftKey && !altKey;
}
