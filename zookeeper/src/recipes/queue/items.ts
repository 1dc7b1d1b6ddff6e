/**
 * The data of a queue's node, in Curator's format: the version `00010001`; for each item `01`, its length in four bytes and its bytes; at
 * the end `02`. Like Java, this code ignores any bytes after the end.
 */
import { ZooKeeperError } from "../../base/errors.ts";
import type { Data } from "../../operations/operations.ts";

const version = 0x00010001;
const itemMark = 0x01;
const endMark = 0x02;

export function encodeItems(items: readonly Data[]): Buffer {
  const parts = items.map((item) => (typeof item === "string" ? Buffer.from(item, "utf8") : item));
  const bytes = Buffer.allocUnsafe(5 + parts.reduce((sum, part) => sum + 5 + part.length, 0));
  let at = bytes.writeInt32BE(version, 0);
  for (const part of parts) {
    at = bytes.writeUInt8(itemMark, at);
    at = bytes.writeInt32BE(part.length, at);
    bytes.set(part, at);
    at += part.length;
  }
  bytes.writeUInt8(endMark, at);
  return bytes;
}

/**
 * Decodes the items of a node.
 * @param path the node's path, for the error
 * @returns views into `bytes`
 * @throws DATA_INVALID
 */
export function decodeItems(bytes: Buffer, path: string): Buffer[] {
  const invalid = (what: string) =>
    new ZooKeeperError("DATA_INVALID", `${path} does not hold queue items: ${what}`, {
      path,
      hint: "look who else writes below this path; only Curator's queues and these belong there",
    });
  if (bytes.length < 5) throw invalid(`${bytes.length} bytes are too few`);
  if (bytes.readInt32BE(0) !== version) throw invalid(`it begins with ${bytes.toString("hex", 0, 4)}, not 00010001`);
  const items: Buffer[] = [];
  for (let at = 4; ; ) {
    const mark = bytes[at];
    if (mark === endMark) return items;
    if (mark !== itemMark) throw invalid(mark === undefined ? "it has no end" : `byte ${at} is ${mark}, not 1 or 2`);
    const length = at + 5 <= bytes.length ? bytes.readInt32BE(at + 1) : -1;
    if (length < 0 || at + 5 + length > bytes.length) throw invalid(`the item at byte ${at} is cut off`);
    items.push(bytes.subarray(at + 5, at + 5 + length));
    at += 5 + length;
  }
}
