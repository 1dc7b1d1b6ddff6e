import { setMaxListeners } from "node:events";

const known = new WeakSet<AbortSignal>();

/**
 * Removes Node's limit of ten listeners per signal, above which Node 20 warns of a leak. A program may pass one signal to a thousand
 * concurrent calls; each call removes its listener when it settles.
 */
export function heardByMany<Signal extends AbortSignal>(signal: Signal): Signal {
  if (!known.has(signal)) {
    known.add(signal);
    setMaxListeners(0, signal);
  }
  return signal;
}
