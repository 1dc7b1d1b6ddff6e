import type { FastifyInstance } from "fastify";
import { CarillonError } from "../base/errors.ts";
import { refuseInexact } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import { inexactPlaces } from "./workers/inexact-parts.ts";

/** Of a body: what it brings may be as deep as is kept, and lies a little deeper in it. */
const depthMost = limits.jsonDepth + 10;
/** As JSON escapes them: only so can either be in a text that was UTF-8. */
const suspectEscapes = /\\u(?:0000|[dD][89a-fA-F])/;

/**
 * Makes true: what a request brings can be stored and told again as it came. A NUL and half of a surrogate pair cannot, nor can what
 * is nested deeper than those who read it go, nor a number that JavaScript has not. The text is looked over, which costs a nanosecond a character; only where it may be
 * wrong, what it says is walked through.
 */
export function refuseOddBodies(app: FastifyInstance): void {
  // As an own key, which JSON.parse makes of it, `__proto__` harms nobody, and the store, files and the library take it too.
  const parse = app.getDefaultJsonParser("ignore", "ignore");
  app.decorateRequest("inexact", null);
  app.addContentTypeParser<string>("application/json", { parseAs: "string" }, (request, body, done) =>
    parse(request, body, (error, value) => {
      if (error) return done(error, value);
      // A worker's poll brings what many runs said: what is wrong there is refused by its part.
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
    // Brackets within texts are counted too: that only means a walk for nothing.
    if (code === 0x7b || code === 0x5b) {
      if (++depth > depthMost) return true;
    } else if (code === 0x7d || code === 0x5d) depth--;
  }
  return suspectEscapes.test(text);
}

const unstorable = /\0|\p{Surrogate}/u;

/** Without recursion: it is what may be nested too deep. */
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
