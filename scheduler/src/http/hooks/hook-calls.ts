import { checkHook, checkHookName, hookObject } from "../../access/hooks/hook.ts";
import type { HookStore } from "../../access/hooks/hook-store.ts";
import { previewOfHook } from "../../access/hooks/preview.ts";
import type { hookRoutes } from "../../api/contract/hooks.ts";
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
    previewHook: async ({ hook, ...request }) => ({ run: await previewOfHook(hooks, hook, request) }),
    async removeHook({ hook, reason }, call) {
      await hooks.remove(hook, changeOf(call, reason), call.ifVersion);
      onChanged();
      return undefined;
    },
  };
}
