/**
 * Calls a caller's listener. If the listener throws, the error surfaces as an uncaught exception; it must not keep a session from
 * ending, another listener from being called, or a connection from being read.
 */
export function tell<Told extends unknown[]>(listener: (...told: Told) => void, ...told: Told): void {
  try {
    listener(...told);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
