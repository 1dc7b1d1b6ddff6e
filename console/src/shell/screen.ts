import { lazyRouteComponent } from "@tanstack/react-router";
import { Refusal } from "../api/call.ts";

/**
 * A screen that is fetched when one goes there. Where no server answers, that is said in its place: left to itself the router
 * loads the page anew, which is then the browser's own error, and all that one still saw is gone.
 */
// biome-ignore lint/suspicious/noExplicitAny: a module's exports, of which one is named.
export function screen<Module extends Record<string, any>, Name extends keyof Module>(
  load: () => Promise<Module>,
  name: Name,
) {
  const fetched = () =>
    load().catch((cause: unknown): never => {
      throw new Refusal("SERVER_UNREACHABLE", 0, String(cause));
    });
  return lazyRouteComponent(fetched, name);
}
