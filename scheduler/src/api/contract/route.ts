/**
 * The definition of a route of the HTTP API, and the types that its schemas share. The server, its OpenAPI page, the typed client and the
 * console all import the contract, so it imports nothing that a browser lacks; a test checks that.
 */
import { z } from "zod";
import type { Noun, Policy, Touches } from "../../access/access.ts";
import type { ErrorCode } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import type { Deprecated } from "../deprecation.ts";

export interface RouteShape {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** A place such as {task} is a field of `params`. */
  readonly path: string;
  readonly noun: Noun;
  readonly summary: string;
  readonly policy: Policy;
  /** The namespaces that the route concerns. */
  readonly touches: Touches;
  /** No name occurs in two of `params`, `query` and `body`, because the client takes all fields as one object. */
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodObject;
  /** null: status 204 without a body. Absent for a stream. */
  readonly answer?: z.ZodType | null;
  /** Default 200. */
  readonly status?: 200 | 201 | 202;
  /** The resource that the route creates; the Location header of the answer has its address. */
  readonly makes?: Made;
  /**
   * `gives`: the answer has its version in its ETag, and a GET is answered by 304 if If-None-Match names the ETag. `demands`: the route
   * also requires If-Match with the version that the change is based on. `heeds`: If-Match is optional. All other routes refuse a change
   * with If-Match.
   */
  readonly etag?: "gives" | "demands" | "heeds";
  /** For a stream of server-sent events: the data of each event. */
  readonly event?: z.ZodType;
  /** The answer contains a secret that is stored nowhere, so it cannot be returned a second time. */
  readonly secret?: true;
  /** These fields of the body are stored nowhere, not even as part of a hash. */
  readonly unseen?: readonly string[];
  /** The request changes nothing; it is no GET because its parameters are too long for a URL. Its answer is not stored. */
  readonly asks?: true;
  /** A user who signed in with a temporary password may call the route. */
  readonly byTemporary?: true;
  /** A user who must add a second factor, and has none yet, may call the route. */
  readonly withoutFactor?: true;
  /**
   * The route is served for another year, and its answers carry the deprecation headers. A deprecated field is marked in its schema:
   * `.meta({ deprecated: true })`.
   */
  readonly deprecated?: Deprecated;
  /** This route accepts a larger request body than other routes. */
  readonly large?: true;
  /** The error codes of this route, beside those that every route may return. */
  readonly errors: readonly ErrorCode[];
}

export interface Made {
  /** The id of the route that reads the resource. */
  readonly readBy: string;
  /** For each place in that route's path, the field of the answer that fills it. */
  readonly places: Readonly<Record<string, string>>;
}

export const route = <const Shape extends RouteShape>(shape: Shape): Shape => shape;

/** True if the route is treated as a change: the request must come from the server's own page, and needs the right to write. */
export const writes = ({ method }: Pick<RouteShape, "method">): boolean => method !== "GET";
/** True if the route accepts an Idempotency-Key. The answers of a route that only reads, or that anyone may call, are not stored. */
export const isKept = (shape: Pick<RouteShape, "method" | "asks" | "policy">): boolean =>
  writes(shape) && shape.asks !== true && shape.policy !== "anyone";

// ---- shared types

/** The store's texts cannot contain NUL. */
export const text = (longest: number) =>
  z
    .string()
    .max(longest)
    .regex(/^[^\0]*$/, "has a NUL in it");
export const name = (longest: number) => text(longest).min(1);
export const taskName = name(limits.taskNameLength);
export const id = z.int().min(1);
/** The version of a task or a calendar. */
export const versionNumber = z
  .int()
  .min(1)
  .max(2 ** 31 - 1);
export const time = z.iso.datetime({ offset: true }).describe("ISO 8601 with an offset or Z.");
export const maybeTime = time.nullable();
export const spanMs = z.number().describe("Milliseconds.");
export const reason = text(limits.reasonLength).optional().describe("Why, for those who look at it later.");
/** "15m", or a number of milliseconds. */
export const duration = z.union([z.string().max(50), z.number().min(0)]);
export const json = z.unknown().describe("Any JSON.");
export const texts = z.record(z.string(), z.string());

export const cursor = text(1_000).optional().describe("`next` of the page before.");
export const limit = (most = 200, preset = 50) => z.int().min(1).max(most).default(preset).describe("Items at most.");
export const paged = { cursor, limit: limit() };

/**
 * Pages are walked by `next`, which is null on the last one. A cursor marks a position, not a page number, so its cost does not grow with
 * the number of pages.
 */
export const page = <Item extends z.ZodType>(item: Item) =>
  z.strictObject({ items: z.array(item), next: z.string().nullable() });
