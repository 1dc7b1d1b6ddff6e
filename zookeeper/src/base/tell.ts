/**
 * Calls a caller's listener. If the listener throws, the error becomes an uncaught exception, so that it cannot interrupt the client:
 * the end of a session, the calls of other listeners, and the reading of a connection continue.
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
