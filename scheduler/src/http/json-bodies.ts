import type { FastifyInstance } from "fastify";
import { CarillonError } from "../base/errors.ts";
import { refuseInexact } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import { inexactPlaces } from "./workers/inexact-parts.ts";

/** The maximum depth of a body. A value within the body may have the full storable depth, so a body may be a little deeper. */
const depthMost = limits.jsonDepth + 10;
/** Matches escapes of NUL and of surrogates. Neither occurs unescaped in a body: JSON forbids NUL, and UTF-8 forbids surrogates. */
const suspectEscapes = /\\u(?:0000|[dD][89a-fA-F])/;

/**
 * Refuses bodies, except those of workers, that the store could not return unchanged: with a NUL, with an unpaired surrogate, with too deep
 * nesting, or with a number that JavaScript cannot represent exactly. The text is scanned first, which is cheap; the parsed value is
 * examined only if the scan finds something suspect.
 */
export function refuseOddBodies(app: FastifyInstance): void {
  // Keys named `__proto__` are accepted ("ignore"): JSON.parse creates them as ordinary own properties, which are harmless.
  const parse = app.getDefaultJsonParser("ignore", "ignore");
  app.decorateRequest("inexact", null);
  app.addContentTypeParser<string>("application/json", { parseAs: "string" }, (request, body, done) =>
    parse(request, body, (error, value) => {
      if (error) return done(error, value);
      // A worker's poll contains parts of many runs, so a number in one part must not cause the whole poll to be refused.
      if (request.routeOptions.config.policy === "worker") {
        request.inexact = inexactPlaces(body);
        return done(null, value);
      }
      const odd = isSuspect(body) ? oddOf(value) : undefined;
      if (odd !== undefined)
        return done(new CarillonError("REQUEST_INVALID", `the body ${odd}`, { hint: "Leave it out, or encode it." }));
      try {
        refuseInexact(body, "the body");
      } catch (inexact) {
        return done(inexact as Error);
      }
      done(null, value);
    }),
  );
}

function isSuspect(text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    // Brackets within strings are counted too, which at most causes the value to be examined unnecessarily.
    if (code === 0x7b || code === 0x5b) {
      if (++depth > depthMost) return true;
    } else if (code === 0x7d || code === 0x5d) depth--;
  }
  return suspectEscapes.test(text);
}

const unstorable = /\0|\p{Surrogate}/u;

/** Describes why the value cannot be stored; undefined if it can. Not recursive, because deep nesting could overflow the call stack. */
function oddOf(value: unknown): string | undefined {
  const left: [part: unknown, depth: number][] = [[value, 0]];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const [part, depth] = next;
    if (typeof part === "string" && unstorable.test(part)) return "has a NUL or half of a surrogate pair in it";
    if (typeof part !== "object" || part === null) continue;
    if (depth >= depthMost) return `is nested deeper than ${depthMost}`;
    for (const [key, inner] of Object.entries(part)) left.push([key, depth + 1], [inner, depth + 1]);
  }
  return undefined;
}
