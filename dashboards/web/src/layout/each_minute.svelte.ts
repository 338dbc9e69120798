// Refreshes shared state of a project while a component that shows the state exists.

const EVERY_MS = 60_000;

/** Calls `ask` at once, on every change of the project, and each minute while the page is visible. Call during component initialisation. */
export function askEachMinute(state: { ask(project: string): Promise<void> }, project: () => string) {
  $effect(() => {
    const wanted = project();
    void state.ask(wanted);
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') void state.ask(wanted);
    }, EVERY_MS);
    return () => clearInterval(timer);
  });
}
