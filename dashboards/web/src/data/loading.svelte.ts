// One thing a page asks for: its data, or why there is none. A newer question ends the one before; leaving the page ends it too.

import { onDestroy, untrack } from 'svelte';
import { Problem, isAborted } from '../api/problem';

export class Loading<T> {
  data = $state.raw<T | undefined>();
  problem = $state.raw<Problem | null>(null);
  busy = $state(false);
  #abort: AbortController | null = null;
  #again: ((isQuiet: boolean) => Promise<void>) | null = null;

  /** Data of the question before stays to be seen until there is an answer. Asked quietly, it is not dimmed. */
  async ask(question: (signal: AbortSignal) => Promise<T>, isQuiet = false): Promise<void> {
    this.end();
    const abort = new AbortController();
    this.#abort = abort;
    this.#again = (isQuiet) => this.ask(question, isQuiet);
    if (!isQuiet) untrack(() => (this.busy = true));
    try {
      const data = await question(abort.signal);
      if (this.#abort !== abort) return;
      this.data = data;
      this.problem = null;
    } catch (error) {
      if (this.#abort !== abort || isAborted(error)) return;
      this.problem = Problem.from(error);
    }
    this.busy = false;
  }

  /** Asks the same again. */
  again(isQuiet = false): Promise<void> {
    return this.#again?.(isQuiet) ?? Promise.resolve();
  }

  end() {
    this.#abort?.abort();
    this.#abort = null;
  }
}

/**
 * Asks now, and again whenever a state changes that `question` reads before its first `await`:
 * `const keys = loading((signal) => queryTable(location.filters, …, signal))`.
 */
export function loading<T>(question: (signal: AbortSignal) => Promise<T>): Loading<T> {
  const state = new Loading<T>();
  $effect(() => {
    let first: Promise<T> | null = null;
    void state.ask((signal) => {
      first = question(signal);
      return first;
    });
  });
  onDestroy(() => state.end());
  return state;
}

/** Asks again every so often while there is more to come and the page is visible. Called while a component is made. */
export function askAgainWhile<T>(state: Loading<T>, isUnfinished: (data: T) => boolean, everyMs: number) {
  let isAsking = false;
  const timer = setInterval(() => {
    if (isAsking || state.busy || state.data === undefined || document.hidden || !isUnfinished(state.data)) return;
    isAsking = true;
    void state.again(true).finally(() => (isAsking = false));
  }, everyMs);
  onDestroy(() => clearInterval(timer));
}
