/**
 * What a route of the HTTP API is, and the words that its schemas share. The contract is what the server, its OpenAPI page, the
 * typed client and the console have in common, so it imports nothing that a browser lacks; a test keeps it so.
 */
import { z } from "zod";
import type { Noun, Policy, Touches } from "../../access/access.ts";
import type { ErrorCode } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";

export interface RouteShape {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** A place such as {task} is a name in `params`. */
  readonly path: string;
  readonly noun: Noun;
  readonly summary: string;
  readonly policy: Policy;
  /** Which namespaces it is about. */
  readonly touches: Touches;
  /** Names are not shared between the three: the client takes them as one. */
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodObject;
  /** null: 204 without a body. Absent for a stream. */
  readonly answer?: z.ZodType | null;
  /** Default 200. */
  readonly status?: 200 | 201 | 202;
  /**
   * `gives`: the answer's version as ETag; `demands`: also If-Match, the version that the change is made from; `heeds`: If-Match may be left out.
   * Others refuse a change with If-Match.
   */
  readonly etag?: "gives" | "demands" | "heeds";
  /** Of a stream of server-sent events: the data of each. */
  readonly event?: z.ZodType;
  /** The answer has a secret in it that is kept nowhere, so it cannot be given a second time. */
  readonly secret?: true;
  /** These fields of the body are kept nowhere, not even as part of a hash. */
  readonly unseen?: readonly string[];
  /** It changes nothing, and is no GET because its question is too long for one: no answer to it is kept. */
  readonly asks?: true;
  /** Whoever signed in with a password that was handed over may ask it. */
  readonly byTemporary?: true;
  /** A user who must have a second factor and has none yet may ask it. */
  readonly withoutFactor?: true;
  /** A request may be larger than others. */
  readonly large?: true;
  /** By which codes it is refused, beside those that every route may give. */
  readonly errors: readonly ErrorCode[];
}

export const route = <const Shape extends RouteShape>(shape: Shape): Shape => shape;

/** Whether it is asked for as one that changes something is: from the own page, by the right to. */
export const writes = ({ method }: Pick<RouteShape, "method">): boolean => method !== "GET";
/** Whether it takes an Idempotency-Key: whoever may only look keeps nothing in the store. */
export const isKept = (shape: Pick<RouteShape, "method" | "asks">): boolean => writes(shape) && shape.asks !== true;

// ---- words

/** The store's texts hold no NUL. */
export const text = (longest: number) =>
  z
    .string()
    .max(longest)
    .regex(/^[^\0]*$/, "has a NUL in it");
export const name = (longest: number) => text(longest).min(1);
export const taskName = name(limits.taskNameLength);
export const id = z.int().min(1);
/** Of a task or a calendar. */
export const versionNumber = z
  .int()
  .min(1)
  .max(2 ** 31 - 1);
export const time = z.iso.datetime({ offset: true }).describe("ISO 8601 with an offset or Z.");
export const maybeTime = time.nullable();
export const spanMs = z.number().describe("Milliseconds.");
export const reason = text(limits.reasonLength).optional().describe("Why, for those who look at it later.");
/** "15m", or milliseconds. */
export const duration = z.union([z.string().max(50), z.number().min(0)]);
export const json = z.unknown().describe("Any JSON.");
export const texts = z.record(z.string(), z.string());

export const cursor = text(1_000).optional().describe("`next` of the page before.");
export const limit = (most = 200, preset = 50) => z.int().min(1).max(most).default(preset).describe("Items at most.");
export const paged = { cursor, limit: limit() };

/** Pages are walked by `next`, null on the last one. A page is told by its place, not by its number, however many there are. */
export const page = <Item extends z.ZodType>(item: Item) =>
  z.strictObject({ items: z.array(item), next: z.string().nullable() });
