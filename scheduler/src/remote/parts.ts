import { limits } from "../base/limits.ts";

/** The maximum number of bytes of a request, well below the size that a server accepts. */
const bytesMax = limits.pollBytes / 4;

/** Splits the items, in order, into parts that each fit into one request. */
export function* inParts<Item>(items: Item[], countMax: number = limits.runsPerPoll): Generator<Item[]> {
  let part: Item[] = [];
  let bytes = 0;
  for (const item of items) {
    const size = Buffer.byteLength(JSON.stringify(item));
    if (part.length > 0 && (part.length >= countMax || bytes + size > bytesMax)) {
      yield part;
      part = [];
      bytes = 0;
    }
    part.push(item);
    bytes += size;
  }
  if (part.length > 0) yield part;
}
