import { checkGroupLimit, type GroupRecord, waitingMost } from "../../task/group-store.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { ageText } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";

export function listGroups(options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const now = cluster.nowMs();
    const groups = await cluster.groups.list();
    if (terminal.json) terminal.object(groups.map(asJson));
    else if (groups.length === 0) terminal.aside("There are no groups yet: a task or a worker names the first.");
    else print(groups, now, terminal);
    return exitCodes.ok;
  });
}

/** Sets the limit of a worker group. @param text a number, or "none" */
export async function limitGroup(
  name: string,
  text: string,
  options: CommonOptions & { reason?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  const runs = text === "none" ? null : Number(text);
  checkGroupLimit(runs);
  return withCluster(options, async ({ cluster }) => {
    const { changed } = await cluster.groups.limit(name, runs, options.reason ?? "");
    if (terminal.json) terminal.object({ group: name, limit: runs, changed });
    else {
      const words = runs === null ? "as many runs at once as its workers take" : `at most ${runs} runs at once`;
      terminal.line(
        `${plain(name)}: ${words}${runs === null ? "" : ", by all its workers together"}${changed ? "" : " (it was so already)"}`,
      );
    }
    return exitCodes.ok;
  });
}

const asJson = ({ changed, ...group }: GroupRecord) => ({
  ...group,
  limitChanged: changed && { at: new Date(changed.atMs).toISOString(), by: changed.by, reason: changed.why },
});

function print(groups: GroupRecord[], now: number, terminal: Terminal): void {
  const { style } = terminal;
  terminal.table(
    [
      { title: "GROUP", least: 8 },
      { title: "TASKS", align: "right", drop: 3 },
      { title: "WORKERS", align: "right" },
      { title: "AT ONCE", align: "right" },
      { title: "LIMIT", align: "right" },
      { title: "WAITING", align: "right" },
      { title: "LIMIT SET", least: 8, drop: 1 },
    ],
    groups.map(({ name, tasks, workers, claimed, limit, waiting, changed }) => [
      plain(name),
      String(tasks),
      workers === 0 && tasks > 0 ? { text: "0", paint: style.bad } : String(workers),
      limit !== null && claimed >= limit ? { text: String(claimed), paint: style.warning } : String(claimed),
      limit === null ? "none" : String(limit),
      waiting >= waitingMost ? `${waitingMost} or more` : String(waiting),
      changed === null
        ? ""
        : plain(`${ageText(changed.atMs, now)} by ${changed.by}${changed.why === "" ? "" : `: ${changed.why}`}`),
    ]),
  );
}
