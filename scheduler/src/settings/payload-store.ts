import { CarillonError, within } from "../base/errors.ts";
import { shownValue } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import { checkNames } from "../base/nearest.ts";

/** Stores large payloads and results outside the store. A key begins with a day, such as 2027-03-01/…, and is used only once. */
export interface PayloadStore {
  /** Resolves once the text has been stored durably. */
  put(key: string, text: string): Promise<void>;
  /** @returns null if the key does not exist */
  get(key: string): Promise<string | null>;
}

export interface PayloadOptions {
  store: PayloadStore;
  /** Values larger than this are stored in `store`: a number of bytes, or a text such as "64kB". Default "64kB". */
  over?: number | string;
}

export interface PayloadSettings {
  store: PayloadStore;
  overBytes: number;
}

const units: Readonly<Record<string, number>> = { B: 1, kB: 1_000, MB: 1_000_000 };

/** Validates the option `payloads`. @throws OPTION_INVALID */
export function payloadSettings(options: PayloadOptions | undefined): PayloadSettings | null {
  if (options === undefined) return null;
  checkNames("payloads", options, ["store", "over"]);
  const { store, over = "64kB" } = options;
  return within("payloads", () => {
    for (const name of ["put", "get"] as const)
      if (typeof store?.[name] !== "function")
        throw new CarillonError("OPTION_INVALID", `store has no ${name}`, {
          path: "store",
          hint: "Give fsPayloads(folder), or an object with the functions put and get.",
        });
    return { store, overBytes: bytesOf(over) };
  });
}

function bytesOf(over: number | string): number {
  const [, digits = "", unit = ""] = /^(\d{1,9})\s?(B|kB|MB)$/.exec(typeof over === "number" ? `${over}B` : over) ?? [];
  const bytes = Number(digits) * (units[unit] ?? 0);
  if (digits !== "" && bytes <= limits.payloadBytes) return bytes;
  throw new CarillonError("OPTION_INVALID", `over cannot be ${shownValue(over)}`, {
    path: "over",
    hint: `Give a number of bytes, or a text such as "64kB": at most ${limits.payloadBytes}.`,
  });
}
