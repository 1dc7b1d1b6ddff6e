import { failureGroupObject } from "../../api/operation-json.ts";
import { CarillonError } from "../../base/errors.ts";
import type { DeadGroup } from "../../run/dead-letters.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { ageText } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";
import { type BulkOptions, filterOf } from "./operations.ts";

const iso = (ms: number) => new Date(ms).toISOString();
const reasonText = (reason: { code: string; words: string } | null) =>
  reason === null ? "(dropped by retention)" : `${reason.code === "" ? "" : `${reason.code}: `}${reason.words}`;

const tasksText = ({ tasks, taskCount }: DeadGroup) =>
  `${tasks.join(", ")}${taskCount > tasks.length ? ` and ${taskCount - tasks.length} more` : ""}`;

export function listDead(options: BulkOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const now = cluster.nowMs();
    const { groups, total } = await cluster.dead.groups(filterOf(options, now));
    if (terminal.json) {
      terminal.object({
        letters: total.letters,
        reasons: total.groups,
        groups: groups.map(failureGroupObject),
      });
      return exitCodes.ok;
    }
    if (groups.length === 0) {
      terminal.aside(`No dead letters in ${cluster.place}.`);
      return exitCodes.ok;
    }
    const { style } = terminal;
    terminal.table(
      [
        { title: "FINGERPRINT" },
        { title: "LETTERS", align: "right" },
        { title: "LAST" },
        { title: "FIRST", drop: 2 },
        { title: "RUN", align: "right", drop: 3 },
        { title: "TASKS", least: 8, drop: 1 },
        { title: "REASON", least: 12 },
      ],
      groups.map((group) => [
        group.fingerprint,
        String(group.letters),
        ageText(group.lastMs, now),
        { text: ageText(group.firstMs, now), paint: style.dim },
        String(group.lastRunId),
        plain(tasksText(group)),
        { text: plain(reasonText(group.reason)), paint: style.bad },
      ]),
    );
    if (total.groups > groups.length)
      terminal.aside(
        `The ${groups.length} most frequent of ${total.groups} reasons. --task, --since and --until narrow it.`,
      );
    terminal.aside(
      `${total.letters} dead letters. Run them again: carillon dead redrive; let them be: carillon dead dismiss`,
    );
    return exitCodes.ok;
  });
}

export function showDead(
  fingerprint: string,
  options: CommonOptions & { limit: number },
  terminal: Terminal,
): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const [group] = (await cluster.dead.groups({ fingerprint })).groups;
    if (!group) {
      throw new CarillonError("RUN_UNKNOWN", `no dead letter has the fingerprint ${JSON.stringify(fingerprint)}`, {
        hint: "See carillon dead list. What was redriven or dismissed is shown by carillon runs show.",
      });
    }
    const letters = await cluster.dead.letters({ fingerprint }, options.limit);
    const error = group.reason === null ? null : (await cluster.runs.find(group.lastRunId)).error;
    if (terminal.json) {
      const listed = letters.map(({ runId, endedMs, task }) => ({ run: runId, task, ended: iso(endedMs) }));
      terminal.object({ ...failureGroupObject(group), error, runs: listed });
      return exitCodes.ok;
    }
    const { style } = terminal;
    terminal.line(`${style.title(fingerprint)}  ${style.bad(plain(reasonText(group.reason)))}`);
    terminal.line(`${group.letters} dead letters of ${plain(tasksText(group))}`);
    const { message } = (error ?? {}) as { message?: unknown };
    if (typeof message === "string") terminal.line(`last: ${plain(message)}`);
    terminal.line();
    terminal.table(
      [{ title: "RUN", align: "right" }, { title: "TASK", least: 8 }, { title: "ENDED" }],
      letters.map(({ runId, task, endedMs }) => [String(runId), plain(task), ageText(endedMs, cluster.nowMs())]),
    );
    return exitCodes.ok;
  });
}
