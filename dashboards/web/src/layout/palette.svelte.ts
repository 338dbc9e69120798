// Whether the command palette is open. Its script loads on first use.

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
