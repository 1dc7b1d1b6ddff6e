/** The state of the hook dialog: an incoming webhook with each field as the text that the form edits. */
import type { Answer, Given } from "carillon/contract";

export type Hook = Answer<"listHooks">["items"][number];
export type Content = Omit<Given<"setHook">, "hook" | "reason">;

export interface Draft {
  name: string;
  scheme: Hook["scheme"];
  secret: string;
  /** The task, or "" if a value of the request chooses it. */
  task: string;
  by: string;
  /** The task of each value, in the form "push=deploy". */
  of: string[];
  /** The source of the payload: a JSON Pointer, a header, or a JSON object of several sources. */
  payload: string;
  key: string;
  delay: string;
}

export function draftOf(hook: Hook | null): Draft {
  const { task, payload = "" } = hook ?? { task: "" };
  return {
    name: hook?.name ?? "",
    scheme: hook?.scheme ?? "github",
    secret: hook?.secret ?? "",
    task: typeof task === "string" ? task : "",
    by: typeof task === "string" ? "" : task.by,
    of: typeof task === "string" ? [] : Object.entries(task.of).map(([value, one]) => `${value}=${one}`),
    payload: typeof payload === "string" ? payload : JSON.stringify(payload),
    key: hook?.key ?? "",
    delay: hook?.delay === undefined ? "" : String(hook.delay),
  };
}

/** Parses the text of the payload field: a single source, or a JSON object of sources; undefined if the JSON is invalid. */
function payloadOf(text: string): Content["payload"] | undefined {
  if (!text.trim().startsWith("{")) return text.trim();
  try {
    return JSON.parse(text) as Content["payload"];
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return undefined;
  }
}

export const isIncomplete = (draft: Draft): boolean =>
  draft.name.trim() === "" ||
  draft.secret.trim() === "" ||
  (draft.by.trim() === "" ? draft.task.trim() === "" : draft.of.length === 0) ||
  draft.of.some((pair) => !pair.includes("=")) ||
  payloadOf(draft.payload) === undefined;

/** The part of a stored hook that a change request contains. */
export const contentOf = ({
  name: _,
  version: __,
  author: ___,
  reason: ____,
  changed: _____,
  bundle: ______,
  ...content
}: Hook): Content => content;

/** @param before the stored hook; properties without a field in the dialog are copied from it */
export function contentOfDraft(draft: Draft, before: Hook | null): Content {
  const { payload: _, key: __, delay: ___, ...kept }: Partial<Content> = before ? contentOf(before) : {};
  const by = draft.by.trim();
  const payload = payloadOf(draft.payload);
  return {
    ...kept,
    scheme: draft.scheme,
    secret: draft.secret.trim(),
    task: by === "" ? draft.task.trim() : { by, of: Object.fromEntries(draft.of.map(pairOf)) },
    ...(payload === undefined || payload === "" ? {} : { payload }),
    ...(draft.key.trim() === "" ? {} : { key: draft.key.trim() }),
    ...(draft.delay.trim() === "" ? {} : { delay: delayOf(draft.delay.trim(), before?.delay) }),
  };
}

/** An unchanged delay keeps its stored form. It may be a number of milliseconds, which as a text would need a unit. */
const delayOf = (text: string, before: Hook["delay"]): NonNullable<Hook["delay"]> =>
  before !== undefined && text === String(before) ? before : text;

function pairOf(pair: string): [string, string] {
  const at = pair.indexOf("=");
  return [pair.slice(0, at), pair.slice(at + 1)];
}

/** Returns 32 random bytes as text, as a new secret. */
export const randomSecret = (): string =>
  [...crypto.getRandomValues(new Uint8Array(32))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
