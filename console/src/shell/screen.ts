import { lazyRouteComponent } from "@tanstack/react-router";
import { Refusal } from "../api/call.ts";

/**
 * A screen whose code is loaded when the user navigates to it. If the server is unreachable, an error is shown in the screen's
 * place. The router's default would reload the page, the browser would show its own error page, and the content on screen would be
 * lost.
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
