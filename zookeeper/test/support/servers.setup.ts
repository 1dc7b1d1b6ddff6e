import { missing, required } from "./servers.ts";

/** Ends a run without the required variables, such as a bare `npx vitest`, with one clear error instead of a failure in every file. */
export default function setup(): void {
  const absent = required.filter((name) => !process.env[name]);
  if (absent.length > 0) throw new Error(missing(absent));
}
