/**
 * Keeps a stream from the server open: after the stream breaks or ends, it is opened again after a wait that grows from 0.5 s to
 * 15 s. A stream on which no byte arrives for 40 s is closed as broken.
 */
const silentMs = 40_000;
const waitsMs = [500, 1_000, 2_000, 4_000, 8_000, 15_000];

const wakes = new Set<() => void>();

/** Opens all waiting streams again at once. */
export function tryNow(): void {
  for (const wake of [...wakes]) wake();
}

const pause = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      wakes.delete(wake);
      signal.removeEventListener("abort", wake);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    wakes.add(wake);
    signal.addEventListener("abort", wake, { once: true });
  });

export interface Attempt {
  signal: AbortSignal;
  /** `open` must call this whenever bytes arrive. If it is not called for 40 s, `signal` is aborted. */
  heard: () => void;
}

/**
 * @param open reads the stream; resolves with true if the stream is complete and must not be opened again
 * @param onBroken called with the error (undefined if the server ended the stream) and the wait in ms before the next attempt
 */
export async function stand(
  open: (attempt: Attempt) => Promise<boolean>,
  signal: AbortSignal,
  onBroken: (error: unknown, waitMs: number) => void,
): Promise<void> {
  for (let failures = 0; !signal.aborted; ) {
    const attempt = new AbortController();
    const end = () => attempt.abort();
    signal.addEventListener("abort", end, { once: true });
    let silence = setTimeout(end, silentMs);
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(end, silentMs);
      failures = 0;
    };
    let broken: unknown;
    try {
      if (await open({ signal: attempt.signal, heard })) return;
    } catch (error) {
      broken = error;
    } finally {
      clearTimeout(silence);
      signal.removeEventListener("abort", end);
    }
    if (signal.aborted) return;
    const waitMs = waitsMs[Math.min(failures++, waitsMs.length - 1)] as number;
    onBroken(broken, waitMs);
    await pause(waitMs, signal);
  }
}

/**
 * Runs `start` only while the page is visible, because a browser allows only a few connections to one server, and a hidden page
 * must not hold one of them.
 * @returns a function that aborts the signal and stops watching the page's visibility
 */
export function whileSeen(start: (signal: AbortSignal) => void, onHidden: () => void = () => undefined): () => void {
  let over: AbortController | undefined;
  const look = () => {
    over?.abort();
    if (document.hidden) return onHidden();
    over = new AbortController();
    start(over.signal);
  };
  document.addEventListener("visibilitychange", look);
  look();
  return () => {
    document.removeEventListener("visibilitychange", look);
    over?.abort();
  };
}
