import { isoTime } from "../../api/run-json.ts";
import { statisticsObject } from "../../api/task-json.ts";
import {
  hourMs,
  type Period,
  type Regression,
  type Spread,
  type StatisticsPeriod,
} from "../../task/statistics/statistics.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { withCluster } from "../reach.ts";
import { instantOf } from "../runs/operations.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { spanText } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";

export interface StatisticsOptions extends CommonOptions {
  by: StatisticsPeriod;
  since?: string;
}

const lengthOfDate = { hour: "2026-11-30 14:00".length, day: "2026-11-30".length, month: "2026-11".length };
const periodText = ({ fromMs }: Period, by: StatisticsPeriod) =>
  isoTime(fromMs).replace("T", " ").slice(0, lengthOfDate[by]);
const spreadText = (spread: Spread | null, figure: "p50" | "p90" | "most") => (spread ? spanText(spread[figure]) : "");
const countText = (count: number) => (count === 0 ? "" : String(count));

const names = {
  took: "half of the runs take at most",
  late: "half of the runs start late by at most",
  failed: "the share of failed runs",
};
const valueText = (figure: Regression["figure"], value: number) =>
  figure === "failed" ? `${Math.round(value * 100)} %` : spanText(value);

/** Prints the statistics of one task, one line for each hour, day or month. */
export function statisticsOfTask(name: string, options: StatisticsOptions, terminal: Terminal): Promise<ExitCode> {
  const sinceMs = options.since === undefined ? undefined : instantOf("--since", options.since);
  return withCluster(options, async ({ cluster }) => {
    const statistics = await cluster.tasks.statistics(name, options.by, sinceMs);
    const { periods, timesUntilMs, worse } = statistics;
    if (terminal.json) {
      terminal.object({ task: name, by: options.by, ...statisticsObject(statistics) });
      return exitCodes.ok;
    }
    const { style } = terminal;
    terminal.line(`${style.title(plain(name))}  ${style.dim(`by the ${options.by}, UTC`)}`);
    if (periods.length === 0) terminal.line(style.dim("  no run ended and no slot was missed in this time"));
    const right = (title: string, drop?: number) => ({
      title,
      align: "right" as const,
      ...(drop === undefined ? {} : { drop }),
    });
    terminal.table(
      [
        { title: "from" },
        right("succeeded"),
        right("failed"),
        right("cancelled", 5),
        right("skipped", 4),
        right("missed"),
        right("retried", 6),
        right("took p50"),
        right("p90", 2),
        right("longest", 3),
        right("late p50", 1),
        right("latest", 7),
      ],
      periods.map((period) => {
        const { counts, took, late } = period;
        return [
          periodText(period, options.by),
          { text: countText(counts.succeeded), paint: style.good },
          { text: countText(counts.failed), paint: style.bad },
          countText(counts.cancelled),
          countText(counts.skipped),
          { text: countText(counts.missed), paint: style.warning },
          countText(counts.retried),
          spreadText(took, "p50"),
          spreadText(took, "p90"),
          spreadText(took, "most"),
          spreadText(late, "p50"),
          spreadText(late, "most"),
        ];
      }),
      "  ",
    );
    for (const { figure, was, is } of worse)
      terminal.line(
        style.warning(
          `  worse in the last 24 hours: ${names[figure]} ${valueText(figure, is)}, after ${valueText(figure, was)} in the two weeks before`,
        ),
      );
    if (periods.length > 0 && timesUntilMs !== null && cluster.nowMs() - timesUntilMs > hourMs)
      terminal.line(style.warning("  no node has added durations for over an hour: is there a leader?"));
    return exitCodes.ok;
  });
}
