import { z } from "zod";
import type { Client } from "../../api/client.ts";
import { routes } from "../../api/contract.ts";
import { isCarillonError } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import { pages, unlessDenied } from "../cluster/calls.ts";
import { type Facts, reasonsOf } from "./explain-run.ts";
import { answerOf, readingTool } from "./tool.ts";

const runParts = answerOf("getRun").pick({
  run: true,
  task: true,
  state: true,
  source: true,
  due: true,
  lateMs: true,
  tookMs: true,
  attempt: true,
  node: true,
});

export const explainTool = readingTool({
  name: "explain_run",
  title: "Explain a run",
  description:
    "Why a run waits, is late, failed, was skipped or cancelled: reasons with codes, and the figures that show each. Where several conditions may hold a run back, all of them are listed.",
  input: routes.getRun.params,
  output: runParts.extend({
    reasons: z.array(
      z.strictObject({
        code: z.string(),
        words: z.string(),
        shown: z.record(z.string(), z.unknown()).describe("The figures that show it."),
      }),
    ),
  }),
  async call({ run }, { api }) {
    const facts = await factsOf(api, run);
    const reasons = reasonsOf(facts);
    const { run: shown } = facts;
    const { task, state, source, due, lateMs, tookMs, attempt, node } = shown;
    const codes = reasons.length === 0 ? "nothing delayed it" : reasons.map(({ code }) => code).join(", ");
    return {
      answer: { run, task, state, source, due, lateMs, tookMs, attempt, node, reasons },
      says: `Run ${run} is ${state}: ${codes}.`,
    };
  },
});

async function factsOf(api: Client, runId: number): Promise<Facts> {
  const run = await api.getRun({ run: runId });
  const [task, cluster] = await Promise.all([taskOf(api, run.task), api.getCluster()]);
  const group = task?.group;
  // An ended run is explained by its own data, so workers and groups are not read.
  const [workers, groups] =
    run.ended !== null || group === undefined
      ? [[], []]
      : await Promise.all([
          unlessDenied<Facts["workers"]>(
            pages((page) => api.listWorkers({ ...page, group }), limits.countedWorkers),
            null,
          ),
          pages((page) => api.listGroups(page)),
        ]);
  return {
    run,
    task,
    leader: cluster.leader?.node ?? null,
    workers,
    group: groups.find(({ name }) => name === group) ?? null,
    nowMs: Date.parse(cluster.now),
  };
}

/** Returns the task; null if it was removed: its runs remain in the history. */
async function taskOf(api: Client, task: string): Promise<Facts["task"]> {
  try {
    return await api.getTask({ task });
  } catch (error) {
    if (isCarillonError(error, "TASK_UNKNOWN")) return null;
    throw error;
  }
}
