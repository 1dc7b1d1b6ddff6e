import type { Hook } from "../../access/hooks/hook.ts";
import type { HookStore } from "../../access/hooks/hook-store.ts";
import { previewOfHook } from "../../access/hooks/preview.ts";
import type { Client } from "../../api/client.ts";
import type { Answer } from "../../api/contract.ts";
import type { Change } from "../../base/change.ts";
import { limits } from "../../base/limits.ts";
import type { ClusterHooks } from "../nodes/cluster.ts";
import { pages, why } from "./calls.ts";

/** Incoming webhooks through a store. */
export const storeHooks = (hooks: HookStore, change: (reason: string) => Change): ClusterHooks => ({
  list: () => hooks.list("", null, limits.hooks),
  find: (name) => hooks.find(name),
  set: (name, content, reason) => hooks.set(name, content, change(reason), null),
  preview: (name, request) => previewOfHook(hooks, name, request),
  remove: (name, reason) => hooks.remove(name, change(reason), null),
});

function hookRecord({ name, version, author, reason, bundle, changed, ...content }: Answer<"getHook">): Hook {
  return { name, version, author, reason, bundle, changedMs: Date.parse(changed), content };
}

/** Incoming webhooks through a server. */
export const serverHooks = (api: Client): ClusterHooks => ({
  list: async () => (await pages((page) => api.listHooks(page), limits.hooks)).map(hookRecord),
  find: async (hook) => hookRecord(await api.getHook({ hook })),
  set: async (hook, content, reason) => hookRecord(await api.setHook({ hook, ...content, ...why(reason) })),
  preview: async (hook, request) => (await api.previewHook({ hook, ...request })).run,
  remove: async (hook, reason) => void (await api.removeHook({ hook, ...why(reason) })),
});
