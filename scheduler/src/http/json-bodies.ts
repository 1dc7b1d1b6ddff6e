import type { FastifyInstance } from "fastify";
import { CarillonError } from "../base/errors.ts";
import { refuseInexact } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import { inexactPlaces } from "./workers/inexact-parts.ts";

/** The depth limit of a whole body: the stored value in it may have the full stored depth, and lies a little deeper. */
const depthMost = limits.jsonDepth + 10;
/** JSON contains a NUL or a surrogate only as an escape, because the body was valid UTF-8. */
const suspectEscapes = /\\u(?:0000|[dD][89a-fA-F])/;

/**
 * Refuses bodies that the store could not keep and return unchanged: those with a NUL, with half of a surrogate pair, with deeper nesting
 * than readers support, or with a number that JavaScript cannot represent. Scanning the text costs a nanosecond per character; the parsed
 * value is walked only if the scan finds something suspect.
 */
export function refuseOddBodies(app: FastifyInstance): void {
  // `__proto__` is harmless as an own key, which JSON.parse makes of it; the store, files and the library accept it too.
  const parse = app.getDefaultJsonParser("ignore", "ignore");
  app.decorateRequest("inexact", null);
  app.addContentTypeParser<string>("application/json", { parseAs: "string" }, (request, body, done) =>
    parse(request, body, (error, value) => {
      if (error) return done(error, value);
      // A worker's poll carries parts of many runs: a wrong number there is refused with its part, not with the whole poll.
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
    // Brackets inside strings are counted too, which at worst causes an unnecessary walk of the value.
    if (code === 0x7b || code === 0x5b) {
      if (++depth > depthMost) return true;
    } else if (code === 0x7d || code === 0x5d) depth--;
  }
  return suspectEscapes.test(text);
}

const unstorable = /\0|\p{Surrogate}/u;

/** Not recursive, because the value may be nested too deeply for the call stack. */
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
