import { routeIds, shapeOf } from "./contract.ts";

const routes = routeIds.map((id) => {
  const { method, path } = shapeOf(id);
  return { method, parts: path.split("/") };
});

/**
 * Returns the methods that the API supports at a path, with HEAD where GET is supported; empty if the path does not exist.
 * @param path as sent by the client, without the query
 */
export function methodsAt(path: string): string[] {
  const given = path.split("/");
  const fits = (part: string, at: number) => (part.startsWith("{") ? given[at] !== "" : part === given[at]);
  const here = routes.filter(({ parts }) => parts.length === given.length && parts.every(fits));
  const methods = here.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method]));
  return [...new Set(methods)].sort();
}
