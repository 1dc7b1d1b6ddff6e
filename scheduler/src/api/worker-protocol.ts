import { z } from "zod";
import { limits } from "../base/limits.ts";
import { tracesHeader } from "../store/trace-context.ts";

/**
 * The messages between a worker and a server: POST /v1/worker/poll, with JSON in both directions. Servers validate requests against these
 * schemas and refuse unknown fields; docs/reference/worker-protocol.md explains the protocol. No time depends on a worker's clock: a worker
 * sends how long ago something happened, and a server sends how long it is until something is due.
 */

const number = z.int().min(1);
/** A string without NUL, because PostgreSQL's texts cannot contain NUL. */
const text = (longest: number) =>
  z
    .string()
    .max(longest)
    .refine((given) => !given.includes("\0"), { message: "has a NUL in it" });
const name = text(limits.taskNameLength).min(1);
const agoMs = z.number().min(0).max(limits.agoMs);

const join = z
  .strictObject({
    name: text(limits.nodeNameLength).min(1).describe("Of this worker; no two that live have the same."),
    instance: text(100).optional().describe("Random text: a join that is repeated with it opens one session."),
    groups: z.array(text(limits.groupNameLength)).max(100).optional().describe("Default: all of the key's."),
    tasks: z.array(name).max(10_000).optional().describe("The tasks that this worker can run; default: any."),
    concurrency: z.int().min(1).max(100_000).optional(),
    host: text(255).optional(),
    pid: z.int().min(0).optional(),
    version: text(100).optional(),
    labels: z
      .record(text(63), text(200))
      .refine((given) => Object.keys(given).length <= limits.labels, { message: `has more than ${limits.labels}` })
      .optional(),
    timeoutMs: z
      .int()
      .min(1_500)
      .max(limits.workerTimeoutMs)
      .optional()
      .describe("Silent for this long is dead; default 6000."),
    former: number.optional().describe("This worker's session that was lost: what is left of its claims moves over."),
  })
  .describe("Opens a session.");

const claimed = { runId: number, fence: number };

const failure = z.strictObject({
  message: z.string().max(limits.errorTextLength),
  code: text(100).optional(),
  stack: z.string().max(limits.errorTextLength).optional(),
  thrown: z.string().max(limits.errorTextLength).optional(),
});

const onward = z
  .union([
    z
      .strictObject({ join: name, payload: z.unknown().optional() })
      .describe("One run of this task, once every child of the run has ended."),
    z
      .strictObject({
        continueAs: z.strictObject({ payload: z.unknown().optional(), state: z.unknown().optional() }),
      })
      .describe("The next run of its chain: of the same task, with the same key and slot."),
  ])
  .describe("Of a success: what it begins, in the write that ends it. One that cannot be begun fails the attempt.");

/**
 * `stopped`: the attempt was aborted because its worker stops; the task's onWorkerLost decides what follows. `snoozed`: the run is
 * postponed, which does not count as a failure.
 */
const verdictOutcomes = ["succeeded", "failed", "cancelled", "released", "stopped", "snoozed"] as const;

const verdict = z
  .strictObject({
    ...claimed,
    outcome: z.enum(verdictOutcomes),
    result: z.unknown().optional(),
    onward: onward.optional(),
    error: failure.optional(),
    retry: z.boolean().optional().describe("Of a failure: false when another try cannot help; default true."),
    retryAfterMs: agoMs.optional().describe("Of a failure: another try comes no sooner, or than the task's maxDelay."),
    retryInMs: z
      .number()
      .min(0)
      .max(limits.postponedMs)
      .optional()
      .describe("Of a failure or a snooze: the next try comes after this time, and no back-off applies."),
    startedAgoMs: agoMs.optional(),
    endedAgoMs: agoMs.optional(),
  })
  .refine(({ outcome, onward }) => outcome === "succeeded" || onward === undefined, {
    message: "only a success goes on",
  })
  .refine(({ outcome, retryInMs }) => outcome === "failed" || (outcome === "snoozed") === (retryInMs !== undefined), {
    message: "a snooze has retryInMs, a failure may have it",
    path: ["retryInMs"],
  });

const report = z.strictObject({ ...claimed, startedAgoMs: agoMs, progress: z.unknown().optional() });

const logLine = z.strictObject({
  ...claimed,
  level: z.enum(["debug", "info", "warn", "error"]).optional(),
  message: z.string().max(limits.errorTextLength),
  fields: z.record(z.string(), z.unknown()).optional(),
  agoMs: agoMs.optional(),
});

const savedState = z.strictObject({
  ...claimed,
  state: z
    .unknown()
    .refine((given) => given !== undefined, { message: "is missing" })
    .describe("For the attempts after this one, until the run ends; null forgets it."),
});

const child = z.strictObject({
  task: name,
  key: text(limits.keyLength)
    .min(1)
    .describe("One child of its parent has it among those of its task: asked for again, it is found."),
  payload: z.unknown().optional(),
});

const spawn = z.strictObject({
  ...claimed,
  children: z.array(child).max(limits.childrenAtOnce).describe("All of them are made, or none."),
  join: name.optional().describe("The task that is to join them: it must exist, or none is made."),
});

const inputsOf = z.strictObject({
  ...claimed,
  afterRunId: z.int().min(0).optional().describe("The last `runId` that was told, where there are more; default 0."),
});

const secretOf = z.strictObject({
  ...claimed,
  name: text(100).min(1),
  version: number.optional().describe("The present one, or the one before; default the present one."),
});

const spanOf = z.strictObject({
  ...claimed,
  context: z
    .string()
    .regex(/^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/)
    .describe("As W3C's traceparent writes it. What the run begins goes on from there."),
});

const turn = z
  .strictObject({
    exceptTaskIds: z
      .array(number)
      .max(limits.heldPerSession)
      .describe("Tasks of which it has runs of that priority waiting: of these only what is of a higher one."),
    leastPriority: z.int().min(0).max(9).describe("The highest of what it has waiting: nothing lower is given."),
    each: z.int().min(1).max(limits.runsPerPoll).describe("Of one task at most."),
    afterTaskId: z.int().min(0).describe("`turnedTo` of the last answer to a turn; 0: begin."),
  })
  .describe("Of a worker that has all it can hold: asks, instead of a claim, for a few due runs of each other task.");

export const pollRequest = z
  .strictObject({
    session: number.optional(),
    join: join.optional(),
    want: z
      .int()
      .min(0)
      .max(limits.runsPerPoll)
      .optional()
      .describe("Runs at most, those among them that it is given again; default none."),
    aheadMs: z
      .int()
      .min(0)
      .max(limits.pollAheadMs)
      .optional()
      .describe("Claim what is due within this; default only what is due."),
    waitMs: z
      .int()
      .min(0)
      .max(limits.pollWaitMs)
      .optional()
      .describe("Wait for something to answer. A poll that names it frees the one of its session that still waits."),
    holds: z
      .array(number)
      .max(limits.heldPerSession)
      .optional()
      .describe("Fences that the worker has: the answer gives what else the book says, and what is lost."),
    verdicts: z.array(verdict).max(limits.runsPerPoll).optional(),
    reports: z.array(report).max(limits.heldPerSession).optional(),
    logs: z.array(logLine).max(limits.runsPerPoll).optional(),
    states: z.array(savedState).max(limits.runsPerPoll).optional(),
    spawns: z.array(spawn).max(limits.childrenAtOnce).optional(),
    spans: z.array(spanOf).max(limits.runsPerPoll).optional().describe("Before what these runs spawn or go on as."),
    inputsOf: inputsOf.optional().describe("Asks what this run comes from."),
    secretOf: secretOf.optional().describe("Asks for a secret's value. Keep it out of what is logged and returned."),
    turn: turn.optional(),
    placesFor: z
      .array(number)
      .max(limits.runsPerPoll)
      .optional()
      .describe("`taskId`s: asks where else runs of these could begin, for a worker whose own places are taken."),
    draining: z.boolean().optional().describe("It stops: what is addressed to it and not claimed goes to others."),
    leave: z.boolean().optional().describe("Ends the session, after everything else."),
  })
  .refine(({ session, join }) => (session === undefined) !== (join === undefined), {
    message: "give either session or join",
  })
  .refine(
    ({ spawns = [] }) => spawns.reduce((sum, { children }) => sum + children.length, 0) <= limits.childrenAtOnce,
    {
      message: `more than ${limits.childrenAtOnce} children at once`,
      path: ["spawns"],
    },
  );

const schedule = z
  .string()
  .optional()
  .describe("Of a slot of one of the task's schedules: which. Its `taskId` is the schedule's own.");

const run = z.strictObject({
  ...claimed,
  task: name,
  schedule,
  attempt: number,
  dueInMs: z.number().describe("Start it then; 0 or less: now."),
  dueMs: z.number(),
  readyMs: z
    .number()
    .optional()
    .describe("Only of a run that first waited for a limit, a rate or a pause: until when."),
  slotMs: z.number().nullable().describe("The nominal time it stands for; null: it was enqueued."),
  timeoutMs: z
    .number()
    .nullable()
    .optional()
    .describe("Only of a run with a timeout of its own: in place of the task's."),
  retry: z.unknown().optional().describe("Only of a run with a retry policy of its own: in place of the task's."),
  expiresInMs: z
    .number()
    .optional()
    .describe("Only of a run that expires: do not begin its first attempt later than this; release it instead."),
  labels: z.record(z.string(), z.string()).optional().describe("Only of a run that has some."),
  uncounted: z
    .int()
    .optional()
    .describe("Only of a run with earlier attempts that used up no try, being lost or snoozed: how many."),
  priority: z.int(),
  key: z.string().nullable(),
  payload: z.unknown(),
  shard: z
    .object({ index: z.int(), total: z.int() })
    .nullable()
    .describe("Of a run that was split: its part, from 0, and how many there are."),
  trace: z
    .object({
      parent: z.string().nullable().describe("The span that the handler's is a child of; null: it begins a trace."),
      links: z.array(z.string()).describe("Spans that it is linked to."),
    })
    .optional()
    .describe(
      `Only of a run that was begun by who traces, and to a worker that says so: by the header ${tracesHeader}.`,
    ),
  state: z.unknown().describe("What an attempt before this one, or the run that this one goes on from, has kept."),
});

const task = z.strictObject({
  task: name,
  schedule,
  taskId: number,
  version: number,
  timeoutMs: z.number().nullable().describe("An attempt that takes longer is to be ended, and has failed."),
  graceMs: z.number().describe("How long a claim outlives its worker's session."),
  onWorkerLost: z.string(),
  retry: z.unknown(),
});

const refusal = z.strictObject({
  ...claimed,
  part: z.enum(["verdict", "report", "log", "state", "spawn", "inputs", "secret", "span"]).describe("Of the request."),
  status: z.int(),
  code: z.string(),
  message: z.string(),
  path: z
    .string()
    .optional()
    .describe('The place in the request of a value that cannot be kept: "verdicts.0.result.id".'),
});

const spawned = z.strictObject({
  ...claimed,
  children: z
    .array(z.strictObject({ runId: number, created: z.boolean().describe("False: it was there already.") }))
    .describe("In the order in which they were asked for."),
});

const input = z.strictObject({
  runId: number,
  task: name,
  key: z.string().nullable().describe("Of a child: the key under which it was spawned."),
  slotMs: z.number().nullable(),
  outcome: z.enum(["succeeded", "failed", "cancelled", "skipped"]),
  result: z.unknown(),
  error: z.unknown(),
});

const inputs = z.strictObject({
  ...claimed,
  inputs: z.array(input).describe("In the order of their numbers."),
  more: z.boolean().describe("Ask on, after the last of these."),
});

const secret = z.strictObject({ ...claimed, name: z.string(), value: z.string() });

const recall = z.strictObject({ ...claimed, kind: z.enum(["cancel", "withdraw"]), why: z.string() });

export const pollAnswer = z.strictObject({
  session: number,
  nowMs: z.number().describe("The store's clock, epoch milliseconds, as this was answered."),
  tookMs: z.number().describe("How long the server took, its waiting included."),
  sureForMs: z.number().describe("Nobody takes this session for dead earlier than this after nowMs."),
  runs: z.array(run),
  tasks: z.array(task).describe("Of the tasks of these runs."),
  recalls: z.array(recall).describe("Asked back. cancel: stop it; withdraw: release it, unless it has started."),
  turnedTo: z.int().optional().describe("Of a turn: where the next one goes on; 0: the round is complete."),
  places: z
    .array(
      z.strictObject({
        places: number.describe("Free, of one other worker."),
        taskIds: z.array(number).describe("What it could begin there, of those that were asked for."),
      }),
    )
    .optional()
    .describe("Of `placesFor`."),
  spawned: z.array(spawned).optional().describe("Of `spawns`, but for those in `refused`."),
  inputs: inputs.optional().describe("Of `inputsOf`, unless it is in `refused`."),
  secret: secret.optional().describe("Of `secretOf`, unless it is in `refused`."),
  refused: z
    .array(refusal)
    .describe("What was said of claims that are not, or no longer, this session's, or asks what cannot be."),
  lost: z.array(number).describe("Of the fences that the request named: no longer this session's."),
});

export type PollRequest = z.infer<typeof pollRequest>;
export type PollAnswer = z.infer<typeof pollAnswer>;
export type JoinRequest = z.infer<typeof join>;
export type GivenRun = z.infer<typeof run>;
export type TaskFacts = z.infer<typeof task>;
export type TakenTurn = z.infer<typeof turn>;
export type GivenVerdict = z.infer<typeof verdict>;
export type GivenRecall = z.infer<typeof recall>;
export type GivenLog = z.infer<typeof logLine>;
export type Refusal = z.infer<typeof refusal>;
export type GivenSpawn = z.infer<typeof spawn>;
export type GivenState = z.infer<typeof savedState>;
export type Spawned = z.infer<typeof spawned>;
export type AskedInputs = z.infer<typeof inputsOf>;
export type AskedSecret = z.infer<typeof secretOf>;
export type GivenSecret = z.infer<typeof secret>;
export type GivenInputs = z.infer<typeof inputs>;

/** An RFC 9457 problem document with Carillon's error code. */
export const problem = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.string().optional(),
  hint: z.string().optional(),
  path: z.string().optional().describe('The part of the request that is wrong, such as "retry.attempts".'),
});
export type Problem = z.infer<typeof problem>;

export const pollPath = "/v1/worker/poll";

/** Returns the protocol as an OpenAPI 3.1 description. */
export function describeProtocol(version: string): object {
  const body = (schema: z.ZodType, io: "input" | "output") => ({
    content: { "application/json": { schema: z.toJSONSchema(schema, { io }) } },
  });
  const problems = {
    description: "Refused",
    content: { "application/problem+json": { schema: z.toJSONSchema(problem) } },
  };
  return {
    openapi: "3.1.0",
    info: { title: "Carillon's workers", version },
    components: { securitySchemes: { workerKey: { type: "http", scheme: "bearer" } } },
    paths: {
      [pollPath]: {
        post: {
          summary: "Says what finished, extends what runs, asks for more",
          security: [{ workerKey: [] }],
          requestBody: { required: true, ...body(pollRequest, "input") },
          responses: { 200: { description: "Answered", ...body(pollAnswer, "output") }, default: problems },
        },
      },
    },
  };
}
