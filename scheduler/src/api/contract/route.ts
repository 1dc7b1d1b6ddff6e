/**
 * The definition of a route of the HTTP API, and the types that its schemas share. The server, the OpenAPI page, the typed client and the
 * console all import the contract, so it must not import anything that browsers lack; a test checks this.
 */
import { z } from "zod";
import type { Noun, Policy, Touches } from "../../access/access.ts";
import type { ErrorCode } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import type { Deprecated } from "../deprecation.ts";

export interface RouteShape {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** The URL path; a part in braces such as {task} is a field of `params`. */
  readonly path: string;
  readonly noun: Noun;
  readonly summary: string;
  readonly policy: Policy;
  /** The namespaces that the route concerns; see `touches` in access.ts. */
  readonly touches: Touches;
  /** `params`, `query` and `body` have no field name in common, because the client takes all fields as one object. */
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodObject;
  /** The schema of the answer; null: status 204 without a body. Undefined for a stream. */
  readonly answer?: z.ZodType | null;
  /** The status of a successful answer; default 200. */
  readonly status?: 200 | 201 | 202;
  /** The resource that the route creates; the answer's Location header contains its path. */
  readonly makes?: Made;
  /**
   * `gives`: the answer's ETag contains the version, and a GET whose If-None-Match contains the ETag is answered with 304. `demands`: in
   * addition, a change requires If-Match with the version that the change is based on. `heeds`: If-Match is optional. All other routes
   * refuse a change with If-Match.
   */
  readonly etag?: "gives" | "demands" | "heeds";
  /** The media type of an answer that is a text; default: the answer is JSON. */
  readonly media?: "text/calendar";
  /** True: the query's `token` may identify the caller, for clients that cannot send headers; see url-token.ts. */
  readonly tokenInUrl?: true;
  /** For a stream of server-sent events: the schema of each event's data. */
  readonly event?: z.ZodType;
  /** True: the answer contains a secret that is not stored, so the answer cannot be repeated for an idempotency key. */
  readonly secret?: true;
  /** These fields of the body are never stored, not even as part of a hash. */
  readonly unseen?: readonly string[];
  /** True: the request changes nothing; it uses POST because its parameters are too long for a URL. Its answer is not stored. */
  readonly asks?: true;
  /** True: users who signed in with a temporary password may call the route. */
  readonly byTemporary?: true;
  /** True: users who must add a second factor, and have none yet, may call the route. */
  readonly withoutFactor?: true;
  /**
   * Set for a deprecated route: it is served for at least another year, and its answers have the deprecation headers. A deprecated field is
   * marked in its schema by `.meta({ deprecated: true })`.
   */
  readonly deprecated?: Deprecated;
  /** True: the route accepts a larger request body than other routes. */
  readonly large?: true;
  /** The error codes of this route, in addition to those that every route may return. */
  readonly errors: readonly ErrorCode[];
}

export interface Made {
  /** The id of the route that reads the resource. */
  readonly readBy: string;
  /** For each part in braces of the path of the route `readBy`, the field of the answer whose value replaces the part. */
  readonly places: Readonly<Record<string, string>>;
}

export const route = <const Shape extends RouteShape>(shape: Shape): Shape => shape;

/**
 * True if the route counts as a change: it needs the scope to write, and a request with a sign-in cookie must come from the
 * server's own page.
 */
export const writes = ({ method }: Pick<RouteShape, "method">): boolean => method !== "GET";
/** True if the route accepts an Idempotency-Key. Answers of routes that only read, or that anyone may call, are not stored. */
export const isKept = (shape: Pick<RouteShape, "method" | "asks" | "policy">): boolean =>
  writes(shape) && shape.asks !== true && shape.policy !== "anyone";

// ---- shared types

/** A string without NUL, because PostgreSQL's texts cannot contain NUL. */
export const text = (longest: number) =>
  z
    .string()
    .max(longest)
    .regex(/^[^\0]*$/, "has a NUL in it");
export const name = (longest: number) => text(longest).min(1);
export const taskName = name(limits.taskNameLength);
export const id = z.int().min(1);
/** The version number of a task or a calendar. */
export const versionNumber = z
  .int()
  .min(1)
  .max(2 ** 31 - 1);
export const time = z.iso.datetime({ offset: true }).describe("ISO 8601 with an offset or Z.");
export const maybeTime = time.nullable();
export const spanMs = z.number().describe("Milliseconds.");
export const reason = text(limits.reasonLength).optional().describe("Why, for those who look at it later.");
/** A duration: a text such as "15m", or a number of ms. */
export const duration = z.union([z.string().max(50), z.number().min(0)]);
export const json = z.unknown().describe("Any JSON.");
export const texts = z.record(z.string(), z.string());

export const cursor = text(1_000).optional().describe("`next` of the page before.");
export const limit = (most = 200, preset = 50) => z.int().min(1).max(most).default(preset).describe("Items at most.");
export const paged = { cursor, limit: limit() };

/**
 * One page of a list. `next` is the cursor of the next page; null on the last page. A cursor contains a position, not a page number, so the
 * cost of a page does not depend on its number.
 */
export const page = <Item extends z.ZodType>(item: Item) =>
  z.strictObject({ items: z.array(item), next: z.string().nullable() });
