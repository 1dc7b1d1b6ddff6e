import { z } from "zod";
import { hookFields } from "../../access/hooks/hook.ts";
import { limits } from "../../base/limits.ts";
import { id, name, page, paged, reason, route, time } from "./route.ts";

const noun = "hooks" as const;
const hookName = name(limits.hookNameLength);
const params = z.strictObject({ hook: hookName.describe("The hook's name; a / ends its namespace.") });

const hook = z
  .strictObject({
    name: hookName,
    version: id,
    ...hookFields,
    author: z.string(),
    reason: z.string(),
    changed: time,
    bundle: z
      .string()
      .nullable()
      .default(null)
      .describe("The bundle whose files define it; null: a person or a program does."),
  })
  .meta({ id: "Hook" });

/** The management of incoming webhooks. Their requests, `POST /v1/hooks/NAME`, are not a part of the contract: their senders define them. */
export const hookRoutes = {
  listHooks: route({
    touches: "listed",
    method: "GET",
    path: "/v1/hooks",
    noun,
    policy: "viewer",
    summary: "Incoming webhooks, by name",
    query: z.strictObject(paged),
    answer: page(hook),
    errors: [],
  }),
  getHook: route({
    touches: "hook",
    method: "GET",
    path: "/v1/hooks/{hook}",
    noun,
    policy: "viewer",
    params,
    etag: "gives",
    summary: "An incoming webhook; its secret by name only",
    answer: hook,
    errors: ["HOOK_UNKNOWN"],
  }),
  setHook: route({
    touches: "hook",
    method: "PUT",
    path: "/v1/hooks/{hook}",
    noun,
    policy: "admin",
    params,
    etag: "heeds",
    summary: "Store an incoming webhook, or its next version: which requests enqueue which runs",
    body: z.strictObject({ ...hookFields, reason }),
    answer: hook,
    errors: ["OPTION_INVALID", "DURATION_INVALID", "SECRET_FORBIDDEN", "HOOK_STALE"],
  }),
  removeHook: route({
    touches: "hook",
    method: "DELETE",
    path: "/v1/hooks/{hook}",
    noun,
    policy: "admin",
    params,
    etag: "heeds",
    summary: "Remove an incoming webhook; its requests are refused from then on",
    query: z.strictObject({ reason }),
    answer: null,
    errors: ["HOOK_UNKNOWN", "HOOK_STALE"],
  }),
} as const;
