/**
 * MCP tools that change something. If the client can ask its user, the user confirms. Otherwise the first call returns a preview and a
 * confirmation, and a second call with the same arguments and this confirmation makes the change. In both cases the state must still be the
 * one that the preview showed.
 */
import { z } from "zod";
import type { CallOptions, Client } from "../../api/client.ts";
import { time } from "../../api/contract/route.ts";
import { type Answer, type Given, type RouteId, type StreamId, shapeOf } from "../../api/contract.ts";
import { isoTime } from "../../api/run-json.ts";
import { CarillonError } from "../../base/errors.ts";
import { outcomes } from "../../run/run.ts";
import type { TaskOptions } from "../../task/task.ts";
import { previewOfEdit } from "./look-ahead-tools.ts";
import { asking, declined } from "./person.ts";
import { answerOf, inputOf, type Tool } from "./tool.ts";

/** The effect that a call would have now. */
interface Preview {
  /** A description of the effect, without any text written by users. */
  would: string;
  shown: Record<string, unknown>;
  /** The part of `shown` to which the confirmation is bound; it omits times that change by themselves. */
  state: Record<string, unknown>;
  /** The version on which the change is based, for a route that requires If-Match. */
  ifVersion?: number;
}

interface Act<Id extends RouteId> {
  name: string;
  title: string;
  routeId: Id;
  more?: string;
  annotations: { destructiveHint: boolean; idempotentHint: boolean };
  listedInput?: z.ZodObject;
  /** Returns the effect of a call. @throws RUN_STATE and other codes if the API would refuse the call */
  preview(given: Given<Id>, api: Client): Promise<Preview>;
  done(answer: Answer<Id>): string;
}

const confirm = z
  .string()
  .max(100)
  .optional()
  .describe(
    "Left out: nothing is done, and a confirmation is returned. With it, and all other arguments as before: it is done.",
  );

function act<Id extends Exclude<RouteId, StreamId>>(given: Act<Id>): Tool {
  const { name, title, routeId, more, annotations, listedInput, preview, done } = given;
  const { summary, policy } = shapeOf(routeId);
  return {
    name,
    title,
    description: `${summary}. ${more === undefined ? "" : `${more} `}Needs the role ${policy}, and a confirmation: the first call only shows what would be done.`,
    input: inputOf(routeId).extend({ confirm }),
    ...(listedInput === undefined ? {} : { listedInput: listedInput.extend({ confirm }) }),
    output: z.strictObject({
      done: z.boolean(),
      would: z.string().describe("What is, or would be, done."),
      shown: z.record(z.string(), z.unknown()).describe("The state that it is, or would be, done in."),
      confirm: z.string().nullable().describe("Give this with the same arguments to do it."),
      expires: time.nullable(),
      answer: answerOf(routeId).nullable(),
    }),
    annotations: { readOnlyHint: false, openWorldHint: false, ...annotations },
    async call({ confirm, ...args }, { api, confirmations, person }) {
      // If the client can ask its user, only the user's reply counts as confirmation.
      const token = person ? person.token : (confirm as string | undefined);
      const check = token === undefined ? undefined : confirmations.use(token, name, args);
      if (check && person?.agrees === false) throw declined();
      const { would, shown, state, ifVersion } = await preview(args as Given<Id>, api);
      if (check === undefined) {
        const { token, expiresMs } = confirmations.issue(name, args, state);
        if (person) return { asks: asking(name, args, would, token) };
        return {
          answer: { done: false, would, shown, confirm: token, expires: isoTime(expiresMs), answer: null },
          says: `Nothing was done. ${would} To do it, call ${name} again with the same arguments and "confirm": "${token}".`,
        };
      }
      check(state);
      const call = api[routeId] as unknown as (given: object, options: CallOptions) => Promise<Answer<Id>>;
      const answer = await call(args, ifVersion === undefined ? {} : { ifVersion });
      return { answer: { done: true, would, shown, confirm: null, expires: null, answer }, says: done(answer) };
    },
  };
}

const hasEnded = ({ state }: Answer<"getRun">): boolean => (outcomes as readonly string[]).includes(state);

/** Returns a task for a preview, and the part of it that must not change between the preview and the call. */
async function taskNow(api: Client, task: string) {
  const { name, version, words, next, paused } = await api.getTask({ task });
  return { shown: { name, version, words, next, paused }, state: { version, paused } };
}

async function payloadIssues(api: Client, { task, payload }: Given<"runTask">) {
  if (payload === undefined) return [];
  return (await api.checkPayload({ task, payload })).issues;
}

const editInput = inputOf("editTask").extend({
  options: z.record(z.string(), z.unknown()).describe("As preview_edit takes them."),
});

export const actTools: readonly Tool[] = [
  act({
    name: "run_task",
    title: "Run a task",
    routeId: "runTask",
    annotations: { destructiveHint: false, idempotentHint: false },
    async preview(given, api) {
      const [{ shown, state }, issues] = await Promise.all([taskNow(api, given.task), payloadIssues(api, given)]);
      const when = given.at === undefined && given.in === undefined ? "due now" : "due at the given time";
      const held = state.paused === null ? "" : " The task is paused, so the run waits until it is resumed.";
      const wrong = issues.length === 0 ? "" : ` The payload has ${issues.length} issues by the task's schema.`;
      return {
        would: `One run of the task would be made, ${when}.${held}${wrong}`,
        shown: { ...shown, issues },
        state: { ...state, issues },
      };
    },
    done: ({ run, created }) =>
      created ? `Run ${run} was made.` : `Run ${run} has this key already, so none was made.`,
  }),
  act({
    name: "cancel_run",
    title: "Cancel a run",
    routeId: "cancelRun",
    annotations: { destructiveHint: true, idempotentHint: true },
    async preview({ run: number }, api) {
      const run = await api.getRun({ run: number });
      const { task, state, attempt, due, started } = run;
      if (hasEnded(run)) throw runState(number, `has ended: ${state}`, "It cannot be cancelled any more.");
      const shown = { run: number, task, state, attempt, due, started };
      const stops = `Run ${number} would be told to stop: a worker has it.`;
      return { would: state === "claimed" ? stops : `Run ${number} would never start.`, shown, state: shown };
    },
    done: ({ run, outcome }) => (outcome === "cancelled" ? `Run ${run} is cancelled.` : `Run ${run} was told to stop.`),
  }),
  act({
    name: "retry_run",
    title: "Run an ended run again",
    routeId: "rerunRun",
    annotations: { destructiveHint: false, idempotentHint: false },
    async preview({ run: number }, api) {
      const run = await api.getRun({ run: number });
      const { task, state, attempt, ended, error, letter } = run;
      if (!hasEnded(run)) throw runState(number, `has not ended: it is ${state}`, "Wait for its end, or cancel it.");
      const shown = { run: number, task, state, attempt, ended, error, letter };
      return {
        would: `A new run would be made with the payload, key and priority of run ${number}.`,
        shown,
        state: shown,
      };
    },
    done: ({ run, created }) =>
      created ? `It runs again as run ${run}.` : `Run ${run} has its key already, so none was made.`,
  }),
  act({
    name: "pause_task",
    title: "Pause a task",
    routeId: "pauseTask",
    annotations: { destructiveHint: true, idempotentHint: true },
    async preview({ task, until }, api) {
      const { shown, state } = await taskNow(api, task);
      const span = until === undefined ? "until it is resumed" : `until ${until}`;
      const again = shown.paused === null ? "" : " It is paused already: only another end would change it.";
      return { would: `The task would not fire ${span}; runs that have begun go on.${again}`, shown, state };
    },
    done: ({ running, held, skipped }) =>
      `The task is paused: ${running.length} runs go on, ${held} wait for the resumption, ${skipped} slots were skipped.`,
  }),
  act({
    name: "resume_task",
    title: "Resume a task",
    routeId: "resumeTask",
    annotations: { destructiveHint: false, idempotentHint: true },
    async preview({ task }, api) {
      const { shown, state } = await taskNow(api, task);
      const already =
        shown.paused === null ? "The task is not paused, so nothing would change." : "The task would fire again.";
      return { would: already, shown, state };
    },
    done: ({ next }) => `The task fires again${next === null ? "" : `; next slot ${next}`}.`,
  }),
  act({
    name: "edit_task",
    title: "Edit a task",
    routeId: "editTask",
    more: "See preview_edit for the options.",
    annotations: { destructiveHint: true, idempotentHint: true },
    listedInput: editInput,
    async preview({ task, options }, api) {
      const shown = await previewOfEdit(api, task, options as TaskOptions);
      const { version, changes } = shown;
      return {
        would: `${changes.length} parts of version ${version} would change.`,
        shown,
        state: { version, changes },
        ifVersion: version,
      };
    },
    done: ({ version, changed }) =>
      changed ? `The task is at version ${version}.` : `Nothing changed: version ${version}.`,
  }),
];

const runState = (run: number, what: string, hint: string): CarillonError =>
  new CarillonError("RUN_STATE", `run ${run} ${what}`, { hint });
