import type { RouteShape } from "./contract/route.ts";
import { type RouteId, shapeOf } from "./contract.ts";

/** Returns the path of the resource that the request has created, for the Location header; null: the route creates no such resource. */
export function locationOf({ makes }: Pick<RouteShape, "makes">, answer: unknown): string | null {
  if (!makes) return null;
  const fields = answer as Readonly<Record<string, unknown>>;
  return shapeOf(makes.readBy as RouteId).path.replace(/\{(\w+)\}/g, (_, place: string) =>
    encodeURIComponent(String(fields[makes.places[place] as string])),
  );
}
