import { CarillonError } from "../base/errors.ts";
import type { LogPlace, LogRead } from "../store/browse-store.ts";

export const placeText = ({ atMs, lies }: LogPlace): string => `${atMs}${lies}`;

export function readPlace(text: string): LogPlace {
  const [, atMs, lies, block, line] = /^(\d{1,15})(\((\d{1,10}),(\d{1,5})\))$/.exec(text) ?? [];
  // A position is a PostgreSQL ctid: a block number of 32 bits and a line number of 16 bits.
  if (atMs !== undefined && lies !== undefined && Number(block) < 2 ** 32 && Number(line) < 2 ** 16)
    return { atMs: Number(atMs), lies };
  throw new CarillonError("REQUEST_INVALID", "that is no place in a log", { hint: "Give a line's id, as it is." });
}

/**
 * Encodes two snapshots and a position. Every line of a stream contains this text, so it is kept short: the numbers of a snapshot are
 * written as differences from its lowest number.
 */
export const logReadText = ({ seen, reading, place }: LogRead): string =>
  [seen, reading].map((snapshot) => (snapshot === null ? "" : packed(snapshot))).join("~") +
  (place === null ? "" : `~${placeText(place)}`);

/** Decodes `logReadText`; also accepts the id of a single line, after which reading continues by time. @throws REQUEST_INVALID */
export function readLogRead(text: string): LogRead {
  const parts = text.split("~");
  if (parts.length === 1) return { seen: null, reading: null, place: readPlace(text) };
  const [seen = "", reading = "", place] = parts;
  const read = {
    seen: seen === "" ? null : unpacked(seen),
    reading: reading === "" ? null : unpacked(reading),
    place: place === undefined ? null : readPlace(place),
  };
  if (parts.length > 3 || (read.seen ?? read.reading) === null) throw foreign();
  return read;
}

function packed(snapshot: string): string {
  const [lowest = "", next = "", others = ""] = snapshot.split(":");
  const since = (number: string) => String(BigInt(number) - BigInt(lowest));
  return [
    lowest,
    since(next),
    ...others
      .split(",")
      .filter((one) => one !== "")
      .map(since),
  ].join(".");
}

/** Decodes a PostgreSQL snapshot `lowest:next:list`; the transaction ids in the list must be ascending and below `next`. */
function unpacked(text: string): string {
  if (!/^[1-9]\d{0,18}(\.\d{1,18})+$/.test(text)) throw foreign();
  const [lowest = 0n, ...distances] = text.split(".").map(BigInt);
  const [next = 0n, ...others] = distances;
  const rising = others.every((one, at) => one < next && one >= (others[at - 1] ?? 0n));
  if (!rising || lowest + next >= 2n ** 63n) throw foreign();
  return `${lowest}:${lowest + next}:${others.map((one) => lowest + one).join(",")}`;
}

const foreign = (): CarillonError =>
  new CarillonError("REQUEST_INVALID", "that is no place in a log that is written", {
    hint: "Give `after` of a line, `tail` of a page or the stream's last event id, as it is.",
  });
