import { parseDuration } from "../../base/duration.ts";
import { within } from "../../base/errors.ts";
import { checkHook, checkHookName, type HookContent } from "./hook.ts";
import type { HookStore } from "./hook-store.ts";
import { keyOf, runOf } from "./mapping.ts";

/** A request whose run is to be shown. Its signature is not checked. */
export interface AskedPreview {
  /** The names are in any case. */
  headers: Readonly<Record<string, string>>;
  body: unknown;
  /** The hook to try before it is stored; default: the stored one. */
  content?: HookContent | undefined;
}

/** The run that a request would enqueue. */
export interface PreviewedRun {
  task: string;
  payload: unknown;
  /** null: each such request is another run. */
  key: string | null;
  /** null: the run is due at once. */
  delay: string | number | null;
}

/**
 * @returns null if the hook has no task for the request, which would be ignored
 * @throws HOOK_UNKNOWN, REQUEST_INVALID, OPTION_INVALID, DURATION_INVALID
 */
export async function previewOfHook(
  hooks: Pick<HookStore, "find">,
  hook: string,
  { headers, body, content }: AskedPreview,
): Promise<PreviewedRun | null> {
  const tried = content === undefined ? (await hooks.find(hook)).content : checkHook(checkHookName(hook), content);
  const sent = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  const run = runOf(tried, { headers: sent, body });
  if (run === null) return null;
  const { task, payload = null, key, in: delay = null } = run;
  if (delay !== null) within("delay", () => parseDuration(delay, "delay"));
  return { task, payload, key: key === undefined ? null : keyOf(hook, key), delay };
}
