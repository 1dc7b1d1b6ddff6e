import type { PollRequest } from "../../api/worker-protocol.ts";
import { type InexactNumber, inexactNumbers } from "../../base/json-numbers.ts";

/** The fields of each list in a poll that are stored as JSON. All other numbers of a poll are validated by the contract. */
const kept: Readonly<Record<"verdicts" | "reports" | "logs" | "states" | "spawns", readonly string[]>> = {
  verdicts: ["result", "onward"],
  reports: ["progress"],
  logs: ["fields"],
  states: ["state"],
  spawns: ["children"],
};
type List = keyof typeof kept;

/** For each list and index: the first number in that item that JavaScript cannot represent exactly. */
export type InexactPlaces = ReadonlyMap<List, ReadonlyMap<number, InexactNumber>>;
/** For each item of a parsed request: the first number in it that JavaScript cannot represent exactly. */
export type InexactItems = ReadonlyMap<object, InexactNumber>;

const isList = (name: unknown): name is List => typeof name === "string" && Object.hasOwn(kept, name);

/**
 * Finds the numbers in stored fields that JavaScript cannot represent exactly.
 * @param text the JSON of a poll, which must be valid
 */
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
