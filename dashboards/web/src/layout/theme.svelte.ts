// Light or dark: what the system prefers, unless the reader chose.

type Theme = 'light' | 'dark';

const KEY = 'unjank-theme';
let dark = $state(false);

/** What charts read their colours anew for. */
export const theme = {
  get current(): Theme {
    return dark ? 'dark' : 'light';
  },
  toggle() {
    localStorage.setItem(KEY, dark ? 'light' : 'dark');
    apply(!dark);
  },
};

export function startTheme() {
  const system = matchMedia('(prefers-color-scheme: dark)');
  const chosen = () => localStorage.getItem(KEY);
  apply(chosen() ? chosen() === 'dark' : system.matches);
  system.addEventListener('change', () => {
    if (!chosen()) apply(system.matches);
  });
}

function apply(wanted: boolean) {
  // First the page, then those who read its colours.
  document.documentElement.dataset.theme = wanted ? 'dark' : 'light';
  dark = wanted;
}

/** The value of a colour of `tokens.css`, for what is drawn on a canvas. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Colours of lines and bars, in order. */
export function seriesColours(): string[] {
  return Array.from({ length: 8 }, (_, index) => colour(`series-${index + 1}`));
}
