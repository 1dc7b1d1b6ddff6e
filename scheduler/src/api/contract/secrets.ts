import { z } from "zod";
import { limits } from "../../base/limits.ts";
import { id, name, page, paged, reason, route, taskName, time } from "./route.ts";

const version = {
  version: id,
  key: z.string().describe("By which key it is wrapped."),
  author: z.string(),
  reason: z.string(),
  changed: time,
};

const secret = z
  .strictObject({
    name: z.string(),
    ...version,
    tasks: z.array(taskName).nullable().describe("Whose runs may have it; null: any of the namespace default."),
  })
  .meta({ id: "Secret" });

const params = z.strictObject({ secret: name(limits.secretNameLength).describe("The secret's name.") });
const noun = "secrets" as const;

/** No route returns a secret's value: users can replace it, but only runs can read it. */
export const secretRoutes = {
  listSecrets: route({
    touches: "cluster",
    method: "GET",
    path: "/v1/secrets",
    noun,
    policy: "editor",
    summary: "Secrets, by name: what there is, never the values",
    query: z.strictObject(paged),
    answer: page(secret),
    errors: [],
  }),
  getSecret: route({
    touches: "cluster",
    method: "GET",
    path: "/v1/secrets/{secret}",
    noun,
    policy: "editor",
    params,
    summary: "A secret's versions, never the values",
    answer: secret.extend({
      versions: z
        .array(z.strictObject({ ...version, kept: z.boolean().describe("Its value can still be handed to runs.") }))
        .describe("Newest first."),
    }),
    errors: ["SECRET_UNKNOWN"],
  }),
  setSecret: route({
    touches: "cluster",
    method: "PUT",
    path: "/v1/secrets/{secret}",
    noun,
    policy: "admin",
    params,
    unseen: ["value"],
    summary: "Store a secret, or its next version",
    body: z.strictObject({
      value: z.string().max(limits.secretBytes).describe("The value, which no route returns."),
      tasks: z
        .array(taskName)
        .min(1)
        .max(1_000)
        .nullable()
        .optional()
        .describe("Whose runs may have it; null: any of the namespace default. Default: as before, at first that."),
      reason,
    }),
    answer: secret,
    errors: ["SECRET_INVALID", "SECRET_KEY_MISSING"],
  }),
  removeSecret: route({
    touches: "cluster",
    method: "DELETE",
    path: "/v1/secrets/{secret}",
    noun,
    policy: "admin",
    params,
    summary: "Destroy a secret's values",
    query: z.strictObject({ reason }),
    answer: null,
    errors: ["SECRET_UNKNOWN"],
  }),
  rewrapSecrets: route({
    touches: "cluster",
    method: "POST",
    path: "/v1/secrets-rewrap",
    noun,
    policy: "admin",
    summary: "Wrap what older keys wrap by the server's present key; ask again while some are left",
    body: z.strictObject({ reason }),
    answer: z.strictObject({ key: z.string(), rewrapped: z.int(), left: z.int() }),
    errors: ["SECRET_KEY_MISSING", "SECRET_INVALID"],
  }),
} as const;
