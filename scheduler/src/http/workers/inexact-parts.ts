import type { PollRequest } from "../../api/worker-protocol.ts";
import { type InexactNumber, inexactNumbers } from "../../base/json-numbers.ts";

/** The fields of a poll that are stored for other readers. The contract checks all other numbers of a poll. */
const kept: Readonly<Record<"verdicts" | "reports" | "logs" | "states" | "spawns", readonly string[]>> = {
  verdicts: ["result", "onward"],
  reports: ["progress"],
  logs: ["fields"],
  states: ["state"],
  spawns: ["children"],
};
type List = keyof typeof kept;

/** By list and index: the first number in each item that a JavaScript number cannot represent exactly. */
export type InexactPlaces = ReadonlyMap<List, ReadonlyMap<number, InexactNumber>>;
/** The same, by the item itself. */
export type InexactItems = ReadonlyMap<object, InexactNumber>;

const isList = (name: unknown): name is List => typeof name === "string" && Object.hasOwn(kept, name);

/** @param text a poll's JSON that has been parsed without an error */
export function inexactPlaces(text: string): InexactPlaces {
  const places = new Map<List, Map<number, InexactNumber>>();
  for (const found of inexactNumbers(text)) {
    const [list, place, field] = found.path;
    if (!isList(list) || typeof place !== "number" || !kept[list].includes(String(field))) continue;
    const its = places.get(list) ?? new Map<number, InexactNumber>();
    places.set(list, its);
    if (!its.has(place)) its.set(place, found);
  }
  return places;
}

export function inexactItems(places: InexactPlaces, request: PollRequest): InexactItems {
  const items = new Map<object, InexactNumber>();
  for (const [list, its] of places)
    for (const [place, found] of its) {
      const item = request[list]?.[place];
      if (item) items.set(item, found);
    }
  return items;
}
