import { lazyRouteComponent } from "@tanstack/react-router";
import { Refusal } from "../api/call.ts";

/**
 * Returns a route component whose code is loaded on navigation. If loading fails, an error is shown in place of the screen. The
 * router's default would reload the page, which would lose the page if the server is unreachable.
 */
// biome-ignore lint/suspicious/noExplicitAny: a module has exports of different types.
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
