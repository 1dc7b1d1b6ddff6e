import { mix } from "../../base/random.ts";

/** Returns a 32-bit hash of the text that is the same on every machine and at every import. */
export function textHash(text: string): number {
  let hash = 0;
  for (let at = 0; at < text.length; at++) hash = mix(hash, text.charCodeAt(at) + 1);
  return mix(hash, text.length);
}
