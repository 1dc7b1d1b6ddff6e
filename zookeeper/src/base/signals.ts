import { setMaxListeners } from "node:events";

const known = new WeakSet<AbortSignal>();

/**
 * Node 20 takes more than ten listeners of one signal for a leak, and warns. A program's one signal may well be given to
 * a thousand calls at once; each of them takes its listener back when it settles.
 */
export function heardByMany<Signal extends AbortSignal>(signal: Signal): Signal {
  if (!known.has(signal)) {
    known.add(signal);
    setMaxListeners(0, signal);
  }
  return signal;
}
