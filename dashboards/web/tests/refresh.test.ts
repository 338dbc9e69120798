import { describe, expect, it } from 'vitest';
import { Problem } from '../src/api/problem';
import { Loading } from '../src/data/loading.svelte';
import { refresh } from '../src/data/refresh.svelte';

/** A request whose answers the test gives. */
async function asked<T>() {
  const answers: { give: (value: T) => void; fail: (error: unknown) => void }[] = [];
  const state = new Loading<T>();
  const first = state.ask(() => new Promise<T>((give, fail) => answers.push({ give, fail })));
  const leave = refresh.join(state);
  return { state, answers, first, leave };
}

describe('a refresh', () => {
  it('keeps the data without dimming it until the answer arrives', async () => {
    const { state, answers, first, leave } = await asked<string>();
    answers[0]!.give('before');
    await first;
    const run = refresh.run();
    expect([state.data, state.busy, refresh.isRunning]).toEqual(['before', false, true]);
    answers[1]!.give('after');
    await run;
    expect([state.data, refresh.isRunning]).toEqual(['after', false]);
    leave();
  });

  it('does not start while a request is under way', async () => {
    const { answers, first, leave } = await asked<string>();
    await refresh.run();
    expect(answers).toHaveLength(1);
    answers[0]!.give('before');
    await first;
    const run = refresh.run();
    await refresh.run();
    expect(answers).toHaveLength(2);
    answers[1]!.give('after');
    await run;
    leave();
  });

  it('that fails leaves the data on the screen, and says so', async () => {
    const { state, answers, first, leave } = await asked<string>();
    answers[0]!.give('before');
    await first;
    const run = refresh.run();
    answers[1]!.fail(new Problem(503, 'store_unavailable', 'the store starts'));
    await run;
    expect([state.data, state.problem, refresh.problem?.status]).toEqual(['before', null, 503]);
    const again = refresh.run();
    answers[2]!.give('after');
    await again;
    expect([state.data, refresh.problem]).toEqual(['after', null]);
    leave();
  });

  it('leaves out requests of pages that were left', async () => {
    const { answers, first, leave } = await asked<string>();
    answers[0]!.give('before');
    await first;
    leave();
    await refresh.run();
    expect(answers).toHaveLength(1);
  });
});
