// Short messages about finished actions. Errors appear beside their cause. If a page has no place for an error, the error appears here.

import { Problem } from '../api/problem';

export interface Toast {
  id: number;
  text: string;
  kind: 'good' | 'bad';
}

const SHOWN_MS = 5_000;
let next = 0;
let shown = $state<Toast[]>([]);

export const toasts = {
  get shown() {
    return shown;
  },
  dismiss(id: number) {
    shown = shown.filter((toast) => toast.id !== id);
  },
};

export function say(text: string, kind: Toast['kind'] = 'good') {
  next += 1;
  const id = next;
  shown = [...shown.slice(-2), { id, text, kind }];
  // An error stays until the reader dismisses it.
  if (kind === 'good') setTimeout(() => toasts.dismiss(id), SHOWN_MS);
}

export function sayProblem(error: unknown) {
  say(Problem.from(error).message, 'bad');
}
