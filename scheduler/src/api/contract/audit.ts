import { z } from "zod";
import { auditAbouts } from "../../access/audit.ts";
import { id, json, limit, name, page, paged, route, text, time } from "./route.ts";

const noun = "audit" as const;
const place = z
  .string()
  .regex(/^\d+:[0-9a-f]{64}$/)
  .describe("A row's place in the chain and its hash, as SEQ:HASH.");

/** The routes that read the audit entries and the data with which a program checks the audit chain: see docs/access/audit.md. */
export const auditRoutes = {
  listAudit: route({
    touches: "cluster",
    method: "GET",
    path: "/v1/audit",
    noun,
    policy: "admin",
    summary: "Every change: who, what before and after, why; newest first",
    query: z.strictObject({
      ...paged,
      about: z.enum(auditAbouts).optional().describe("Only changes of this kind of thing."),
      named: text(200).optional().describe("With `about`: which one."),
      who: name(200).optional().describe("Only changes by this author."),
      act: name(100).optional().describe("The verb, such as edit."),
      since: time.optional().describe("Only changes at or after this time."),
      until: time.optional().describe("Only changes before this time."),
      entry: id.optional().describe("This one alone."),
    }),
    answer: page(
      z
        .strictObject({
          entry: id,
          at: time,
          who: z.string(),
          act: z.string(),
          about: z.string(),
          named: z.string(),
          task: z.string().nullable().describe("Of a run: its task, as long as history has the run."),
          before: json,
          after: json,
          why: z.string(),
        })
        .meta({ id: "AuditEntry" }),
    ),
    errors: [],
  }),
  getAuditChain: route({
    touches: "cluster",
    method: "GET",
    path: "/v1/audit/chain",
    noun,
    policy: "admin",
    summary: "Where the audit's hash chain begins and ends",
    answer: z
      .strictObject({
        head: place.describe("The last row."),
        anchor: place.describe("What the first row that is kept comes after."),
        olderRows: z.int().nullable().describe("Rows from before the chain; null: they were pruned."),
        unchained: z.int().describe("Later rows without a place in the chain: there are to be none."),
      })
      .meta({ id: "AuditChain" }),
    errors: [],
  }),
  listAuditRows: route({
    touches: "cluster",
    method: "GET",
    path: "/v1/audit/rows",
    noun,
    policy: "admin",
    summary: "The audit's rows as they were hashed, oldest first",
    query: z.strictObject({
      cursor: paged.cursor,
      limit: limit(1_000, 200),
      part: z
        .enum(["older", "chain"])
        .describe("Those from before the chain, by number, or those of the chain, in its order."),
    }),
    answer: page(
      z
        .strictObject({
          seq: id.nullable().describe("Its place; null: it is from before the chain."),
          hash: z.string().nullable(),
          content: z.string().describe("JSON, exactly as it was hashed."),
        })
        .meta({ id: "AuditRow" }),
    ),
    errors: [],
  }),
} as const;
