/** The interface of formats: what is sent to a chat or alert service, and how its answer is read. */
import type { AlarmMessage } from "../../../alarms/alarms.ts";

export interface Link {
  title: string;
  url: string;
}

/** A message with the texts that a channel's readers see. */
export interface Notice {
  /** The message's id; it stays the same when the message is sent again. */
  id: string;
  message: AlarmMessage;
  subject: string;
  /** The subject preceded by the product's name, for channels that several programs post to. */
  title: string;
  text: string;
  /** Links to the console; empty if no console is configured. */
  links: Link[];
}

export interface Sending {
  url: string;
  headers?: Record<string, string>;
  /** The request's body, sent as JSON. */
  body: object;
}

export interface Answered {
  status: number;
  text: string;
  /** The answer's body parsed as JSON; undefined if it is not JSON. */
  json: unknown;
}

export interface Refusal {
  why: string;
  /** How long the service asks the client to pause, in ms; undefined if the answer does not say. */
  afterMs?: number | undefined;
}

export interface Format {
  sending(notice: Notice, nowMs: number): Sending;
  /** Reads from the answer's body whether the service refused the message. @returns null if the service accepted it */
  refusal?(answer: Answered): Refusal | null;
}

/** Cuts the text to `most` UTF-16 units; a cut text ends with "…". */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const kept = text.slice(0, most - 1);
  return `${/[\uD800-\uDBFF]$/.test(kept) ? kept.slice(0, -1) : kept}…`;
}

/** Cuts the text to `most` bytes of UTF-8; a cut text ends with "…". */
export function cutBytes(text: string, most: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return text;
  let end = most - Buffer.byteLength("…");
  // Moves back to the first byte of a character.
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return `${bytes.subarray(0, end).toString()}…`;
}

/** The key that all messages of one incident have in common. Each test message is an incident by itself. */
export const incidentOf = ({ id, message: { kind, rule, sinceMs } }: Notice): string =>
  kind === "test" ? id : `carillon-${rule}-${Math.round(sinceMs)}`;

export const objectOf = (json: unknown): Record<string, unknown> =>
  typeof json === "object" && json !== null && !Array.isArray(json) ? (json as Record<string, unknown>) : {};

/**
 * Reads the refusal of a service that always answers with status 200, and reports success by a number in the body.
 * @param name the field of that number, which is 0 if the message was accepted
 * @param said the field of the error's text
 * @param limited the pause in ms for each number that means "too many requests"
 * @returns null if the message was accepted
 */
export function refusalByCode(
  { json, text }: Answered,
  { name, said, limited }: { name: string; said: string; limited: Readonly<Record<number, number>> },
): Refusal | null {
  const answer = objectOf(json);
  const code = answer[name];
  if (code === 0) return null;
  if (typeof code !== "number") return { why: text };
  return { why: `${name} ${code}: ${String(answer[said] ?? "")}`, afterMs: limited[code] };
}

/**
 * Changes `](` and `<` in texts of tasks and errors, so that a service's Markdown reads no links, tags or mentions that are
 * written with them.
 */
export const harmless = (text: string): string => text.replaceAll("](", "] (").replaceAll("<", "＜");
