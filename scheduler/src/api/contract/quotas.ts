import { z } from "zod";
import { everyOther, quotaKinds } from "../../access/quota-store.ts";
import { limits } from "../../base/limits.ts";
import { id, name, page, paged, reason, route, time } from "./route.ts";

const kind = z.enum(quotaKinds);
const most = id.nullable();
const mosts = {
  enqueues: most.describe(
    "Runs that are enqueued in a minute, by each server: by the API, of a worker key by its workers; null: no limit.",
  ),
  waiting: most.describe("Of a namespace: runs that no worker has."),
  bytes: most.describe("Of a namespace: what the payloads of these take in the store."),
  history: most.describe(
    "Of a namespace: bytes that the history of its runs takes, as the leader estimates each ten minutes.",
  ),
  streams: most.describe(`Of a user: event streams from each server; null: ${limits.streamsPerUser}.`),
  sessions: most.describe(`Of a worker key: live sessions; null: ${limits.sessionsPerKey}.`),
};

const noun = "cluster" as const;

const quota = z
  .strictObject({
    kind,
    name: z.string().describe(`${everyOther}: each that has none of its own.`),
    ...mosts,
    used: z
      .strictObject({
        enqueues: z.int().describe("By this server, in the present minute."),
        waiting: z.int().nullable().describe("Counted up to the quota."),
        bytes: z.int().nullable(),
        history: z.int().nullable(),
        streams: z.int().nullable().describe("From this server, now."),
        sessions: z.int().nullable(),
      })
      .nullable()
      .describe(`null: of ${everyOther}.`),
    changed: z.strictObject({ at: time, by: z.string(), why: z.string() }),
  })
  .meta({ id: "Quota" });

const params = z.strictObject({
  kind: kind.describe("Whose quota it is: a namespace's, a user's or a worker key's."),
  name: name(100).describe(`The name of the namespace, user or key; ${everyOther}: each that has none of its own.`),
});

export const quotaRoutes = {
  listQuotas: route({
    touches: "listed",
    method: "GET",
    path: "/v1/quotas",
    noun,
    policy: "viewer",
    summary: "How much namespaces, users and worker keys may take, and how much they do: those that are about who asks",
    query: z.strictObject(paged),
    answer: page(quota),
    errors: [],
  }),
  getQuota: route({
    touches: "cluster",
    method: "GET",
    path: "/v1/quotas/{kind}/{name}",
    noun,
    policy: "admin",
    summary: "The quota of a namespace, a user or a worker key, and how much of it is taken",
    params,
    answer: quota,
    errors: ["QUOTA_UNKNOWN"],
  }),
  setQuota: route({
    touches: "cluster",
    method: "PUT",
    path: "/v1/quotas/{kind}/{name}",
    noun,
    policy: "admin",
    summary: "Let a namespace, a user or a worker key take so much and no more; without any limit the quota is removed",
    params,
    body: z.strictObject({
      enqueues: mosts.enqueues.default(null),
      waiting: mosts.waiting.default(null),
      bytes: mosts.bytes.default(null),
      history: mosts.history.default(null),
      streams: mosts.streams.default(null),
      sessions: mosts.sessions.default(null),
      reason,
    }),
    answer: z.strictObject({ kind, name: z.string(), ...mosts, changed: z.boolean() }),
    errors: ["OPTION_INVALID"],
  }),
};
