/**
 * Calls what a caller gave us to be told by. Should it throw, that is its own fault, and surfaces as an uncaught
 * exception; it must not keep a session from ending, another listener from hearing, or a connection from being read.
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
