// A request of a page: its data or its problem. A newer request aborts the previous one. Leaving the page aborts the request, too.

import { onDestroy, untrack } from 'svelte';
import { Problem, isAborted } from '../api/problem';
import { refresh } from './refresh.svelte';

/** How visible a request is. `loud` dims the previous data. `quiet` does not. `refresh` also keeps the data if the request fails. */
type Manner = 'loud' | 'quiet' | 'refresh';

export class Loading<T> {
  data = $state.raw<T | undefined>();
  problem = $state.raw<Problem | null>(null);
  busy = $state(false);
  /** Resolves when the current request completes. `null` if no request is running. */
  settled: Promise<void> | null = null;
  #abort: AbortController | null = null;
  #again: ((manner: Manner) => Promise<void>) | null = null;

  /** Keeps the previous data on the screen until the answer arrives. */
  async ask(question: (signal: AbortSignal) => Promise<T>, manner: Manner = 'loud'): Promise<void> {
    this.end();
    refresh.sent(manner === 'loud');
    const abort = new AbortController();
    this.#abort = abort;
    this.#again = (manner) => this.ask(question, manner);
    if (manner === 'loud') untrack(() => (this.busy = true));
    const request = this.#send(question, abort, manner);
    this.settled = request;
    await request;
    if (this.settled === request) this.settled = null;
  }

  async #send(question: (signal: AbortSignal) => Promise<T>, abort: AbortController, manner: Manner) {
    try {
      const data = await question(abort.signal);
      if (this.#abort !== abort) return;
      this.data = data;
      this.problem = null;
    } catch (error) {
      if (this.#abort !== abort || isAborted(error)) return;
      const problem = Problem.from(error);
      // A failed refresh leaves the data on the screen.
      if (manner === 'refresh' && untrack(() => this.data !== undefined)) refresh.fail(problem);
      else this.problem = problem;
    }
    this.busy = false;
  }

  /** Repeats the last request. */
  again(isQuiet = false): Promise<void> {
    return this.#again?.(isQuiet ? 'quiet' : 'loud') ?? Promise.resolve();
  }

  /** Repeats the last request and leaves everything on the screen until the answer arrives. */
  refresh(): Promise<void> {
    return this.#again?.('refresh') ?? Promise.resolve();
  }

  end() {
    this.#abort?.abort();
    this.#abort = null;
  }
}

/**
 * Sends the request now, and again when any state changes that `question` read before its first `await`:
 * `const keys = loading((signal) => queryTable(location.filters, …, signal))`.
 */
export function loading<T>(question: (signal: AbortSignal) => Promise<T>): Loading<T> {
  const state = new Loading<T>();
  $effect(() => send(state, question));
  return ofComponent(state);
}

/**
 * Like `loading`, but sends its request before other components that appear at the same time. A browser sends six requests at once, and the
 * requests of child components would take these places first.
 */
export function loadingFirst<T>(question: (signal: AbortSignal) => Promise<T>): Loading<T> {
  const state = new Loading<T>();
  $effect.pre(() => send(state, question));
  return ofComponent(state);
}

/**
 * Sends its request when `first` has data, and again whenever `first` has new data. The first numbers of a page then do not share the
 * processors of the server with the numbers that follow.
 */
export function loadingAfter<F, T>(
  first: Loading<F>,
  question: (data: F, signal: AbortSignal) => Promise<T>,
): Loading<T> {
  const state = new Loading<T>();
  $effect(() => {
    const data = first.data;
    // Only new data of `first` repeats this request. A change of the filters loads `first` again.
    if (data !== undefined) untrack(() => send(state, (signal) => question(data, signal)));
  });
  return ofComponent(state);
}

function send<T>(state: Loading<T>, question: (signal: AbortSignal) => Promise<T>) {
  // A request that depends on refreshed data belongs to the refresh.
  const manner = untrack(() => refresh.isRunning) ? 'refresh' : 'loud';
  void state.ask(question, manner);
}

function ofComponent<T>(state: Loading<T>): Loading<T> {
  onDestroy(refresh.join(state));
  onDestroy(() => state.end());
  return state;
}

/**
 * Repeats a request while its data is unfinished or the server is temporarily unavailable. Pauses while the page is hidden.
 * Call this function while a component is created.
 */
export function askAgainWhile<T>(state: Loading<T>, isUnfinished: (data: T) => boolean, everyMs: number) {
  let isAsking = false;
  const isWanted = () => (state.data === undefined ? state.problem?.isTemporary : isUnfinished(state.data));
  const timer = setInterval(() => {
    if (isAsking || state.busy || document.hidden || !isWanted()) return;
    isAsking = true;
    void state.again(true).finally(() => (isAsking = false));
  }, everyMs);
  onDestroy(() => clearInterval(timer));
}
