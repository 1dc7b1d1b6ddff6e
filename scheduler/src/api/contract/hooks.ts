import { z } from "zod";
import { hookFields } from "../../access/hooks/hook.ts";
import { limits } from "../../base/limits.ts";
import { duration, id, json, name, page, paged, reason, route, taskName, texts, time } from "./route.ts";

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

/** The routes that manage incoming webhooks. `POST /v1/hooks/NAME` is not part of the contract: the sender defines those requests. */
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
  previewHook: route({
    touches: "hook",
    method: "POST",
    // Not below /v1/hooks/: a hook's name may contain "/", so any path there can be the address of a hook.
    path: "/v1/hook-previews/{hook}",
    noun,
    policy: "viewer",
    params,
    asks: true,
    summary: "The run that a request would enqueue by an incoming webhook, without its signature; changes nothing",
    body: z.strictObject({
      headers: texts.default({}).describe("The request's headers; their names in any case."),
      body: json.describe("The request's body."),
      content: z
        .strictObject(hookFields)
        .optional()
        .describe("The hook to try, before it is stored. Default: the stored one."),
    }),
    answer: z.strictObject({
      run: z
        .strictObject({
          task: taskName,
          payload: json,
          key: z.string().nullable().describe("null: it has no key, and each request is another run."),
          delay: duration.nullable().describe("null: it is due at once."),
        })
        .nullable()
        .describe("null: the hook has no task for the request, which is taken and ignored."),
    }),
    errors: ["HOOK_UNKNOWN", "REQUEST_INVALID", "OPTION_INVALID", "DURATION_INVALID"],
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
