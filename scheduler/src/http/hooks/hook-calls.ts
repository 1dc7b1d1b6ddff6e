import { checkHook, checkHookName, hookObject } from "../../access/hooks/hook.ts";
import type { HookStore } from "../../access/hooks/hook-store.ts";
import { keyOf, runOf } from "../../access/hooks/mapping.ts";
import type { hookRoutes } from "../../api/contract/hooks.ts";
import { parseDuration } from "../../base/duration.ts";
import { within } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { Some } from "../call.ts";
import { changeOf } from "../calls/changes.ts";
import { nameCursor, pageOf } from "../calls/pages.ts";

/** @param onChanged called after a change, before the request is answered */
export function hookCalls(hooks: HookStore, onChanged: () => void): Some<keyof typeof hookRoutes> {
  return {
    async listHooks({ cursor, limit }, { reach }) {
      const rows = await hooks.list(nameCursor(cursor), reach.namespaces, limit + 1);
      return pageOf(rows, limit, hookObject, ({ name }) => [name]);
    },
    getHook: async ({ hook }) => hookObject(await hooks.find(hook)),
    async setHook({ hook, reason, ...content }, call) {
      const checked = checkHook(checkHookName(hook), content);
      const stored = await hooks.set(hook, checked, changeOf(call, reason), call.ifVersion);
      onChanged();
      return hookObject(stored);
    },
    async previewHook({ hook, headers, body, content }) {
      const tried = content === undefined ? (await hooks.find(hook)).content : checkHook(checkHookName(hook), content);
      const sent = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
      const run = runOf(tried, { headers: sent, body });
      if (run === null) return { run };
      const { task, payload = null, key, in: delay = null } = run;
      if (delay !== null) within("delay", () => parseDuration(delay, "delay"));
      return { run: { task, payload: payload as Json, key: key === undefined ? null : keyOf(hook, key), delay } };
    },
    async removeHook({ hook, reason }, call) {
      await hooks.remove(hook, changeOf(call, reason), call.ifVersion);
      onChanged();
      return undefined;
    },
  };
}
