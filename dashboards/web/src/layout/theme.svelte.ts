// Light or dark colours. Follows the choice of the user or, without a choice, the preference of the system.

type Theme = 'light' | 'dark';

const KEY = 'unjank-theme';
let dark = $state(false);

/** Charts depend on `current`, so that a change of the theme makes the charts read their colours again. */
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
  // Set before `dark` changes, because that change makes components read the colours of the page.
  document.documentElement.dataset.theme = wanted ? 'dark' : 'light';
  dark = wanted;
}

/** The value of a colour of `tokens.css`, for drawing on a canvas. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
