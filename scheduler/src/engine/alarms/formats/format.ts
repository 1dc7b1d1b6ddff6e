/** What a service of chats or of alerts is sent, and how its answer is read. */
import type { AlarmMessage } from "../../../alarms/alarms.ts";

export interface Link {
  title: string;
  url: string;
}

/** A message as the channel's readers get it. */
export interface Notice {
  /** The same at each resend of the same message. */
  id: string;
  message: AlarmMessage;
  subject: string;
  /** The subject with the name of Carillon, for places that messages of several programs come to. */
  title: string;
  text: string;
  /** Links to the console; empty if no console is configured. */
  links: Link[];
}

export interface Sending {
  url: string;
  headers?: Record<string, string>;
  /** Is sent as JSON. */
  body: object;
}

export interface Answered {
  status: number;
  text: string;
  /** The answer as JSON; undefined: it is none. */
  json: unknown;
}

export interface Refusal {
  why: string;
  /** How long the service wants no further request. */
  afterMs?: number | undefined;
}

export interface Format {
  sending(notice: Notice, nowMs: number): Sending;
  /** Reads refusals that the service's own format has in its answer. @returns null: there is none */
  refusal?(answer: Answered): Refusal | null;
}

/** The first UTF-16 units of the text; the last one is an ellipsis if the text was longer. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const kept = text.slice(0, most - 1);
  return `${/[\uD800-\uDBFF]$/.test(kept) ? kept.slice(0, -1) : kept}…`;
}

/** The beginning of the text that has at most this many bytes of UTF-8. */
export function cutBytes(text: string, most: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return text;
  let end = most - Buffer.byteLength("…");
  // A continuation byte is never the first byte of a character.
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return `${bytes.subarray(0, end).toString()}…`;
}

/** The key that the messages of one incident share. Each test is an incident of its own. */
export const incidentOf = ({ id, message: { kind, rule, sinceMs } }: Notice): string =>
  kind === "test" ? id : `carillon-${rule}-${Math.round(sinceMs)}`;

export const objectOf = (json: unknown): Record<string, unknown> =>
  typeof json === "object" && json !== null && !Array.isArray(json) ? (json as Record<string, unknown>) : {};

/**
 * The refusal of a service that answers 200 in any case, and says by a number whether it took the message.
 * @param name the field of the number, which is 0 if the message was taken @param said the field of the error's text
 * @param limited how long each number that means "too many requests" asks for a pause
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

/** Text of tasks and errors in a service's Markdown: it makes no link and no tag, and mentions no one. */
export const harmless = (text: string): string => text.replaceAll("](", "] (").replaceAll("<", "＜");
