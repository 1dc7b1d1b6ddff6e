import { CarillonError } from "../base/errors.ts";
import type { LogPlace, LogRead } from "../store/browse-store.ts";

export const placeText = ({ atMs, lies }: LogPlace): string => `${atMs}${lies}`;

export function readPlace(text: string): LogPlace {
  const [, atMs, lies, block, line] = /^(\d{1,15})(\((\d{1,10}),(\d{1,5})\))$/.exec(text) ?? [];
  // The store's places (PostgreSQL's ctid) have a block of 32 bits and a line of 16 bits.
  if (atMs !== undefined && lies !== undefined && Number(block) < 2 ** 32 && Number(line) < 2 ** 16)
    return { atMs: Number(atMs), lies };
  throw new CarillonError("REQUEST_INVALID", "that is no place in a log", { hint: "Give a line's id, as it is." });
}

/**
 * The two snapshots and the place. Every line of a stream carries this text, so the numbers in a snapshot are written as differences from
 * its lowest.
 */
export const logReadText = ({ seen, reading, place }: LogRead): string =>
  [seen, reading].map((snapshot) => (snapshot === null ? "" : packed(snapshot))).join("~") +
  (place === null ? "" : `~${placeText(place)}`);

/** Also reads the id of a single line: reading then continues after that line, by the lines' times. @throws REQUEST_INVALID */
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

/** Unpacks a PostgreSQL snapshot `lowest:next:list`; the transactions in the list are below `next`, in ascending order. */
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
