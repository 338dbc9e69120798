// Hands a trace over to Perfetto's viewer, inside the browser: no server receives it. Pure except for `openPerfetto`.
//
// The protocol of Perfetto: open its page, send `PING` until it replies `PONG`, then post the file.

export const PERFETTO = 'https://ui.perfetto.dev';
const ASK_EVERY_MS = 100;
const PATIENCE_MS = 60_000;

/** The part of `Window` that this module needs. */
export interface Viewer {
  readonly closed: boolean;
  postMessage(message: unknown, origin: string): void;
  close(): void;
}

export interface TraceFile {
  buffer: ArrayBuffer;
  title: string;
  fileName: string;
}

/** Waits until the viewer is ready, then posts the file. `host` receives the messages to this page. */
export async function handOver(viewer: Viewer, host: EventTarget, file: TraceFile, patienceMs = PATIENCE_MS) {
  await answered(viewer, host, patienceMs);
  viewer.postMessage({ perfetto: file }, PERFETTO);
}

function answered(viewer: Viewer, host: EventTarget, patienceMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let asked = 0;
    const timer = setInterval(ask, ASK_EVERY_MS);
    host.addEventListener('message', hear);

    function ask() {
      if (viewer.closed) return end(() => reject(new Error('The tab of Perfetto was closed.')));
      if (asked * ASK_EVERY_MS >= patienceMs)
        return end(() => reject(new Error('Perfetto did not respond. Download the file and open it there.')));
      asked += 1;
      viewer.postMessage('PING', PERFETTO);
    }
    function hear(event: Event) {
      const { source, origin, data } = event as MessageEvent;
      // Any page can send messages. Only a message from Perfetto's tab counts.
      if (source === viewer && origin === PERFETTO && data === 'PONG') end(resolve);
    }
    function end(how: () => void) {
      clearInterval(timer);
      host.removeEventListener('message', hear);
      how();
    }
  });
}

/** Opens Perfetto in a new tab with a trace. Call this function directly in a click handler: after an `await`, browsers block the tab. */
export async function openPerfetto(asked: Promise<string>, title: string, fileName: string): Promise<void> {
  const viewer = window.open(PERFETTO);
  if (!viewer) throw new Error('The browser blocked the new tab. Allow new tabs for this page, or download the file.');
  try {
    const { buffer } = new TextEncoder().encode(await asked);
    await handOver(viewer, window, { buffer, title, fileName });
  } catch (error) {
    viewer.close();
    throw error;
  }
}
