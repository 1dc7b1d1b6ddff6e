import { Link } from "@tanstack/react-router";
import { useWords } from "../messages/words.ts";
import { useKnown } from "../parts/state/known.ts";
import type { Tone } from "../parts/state/mark.tsx";
import { useCounts } from "./counts.ts";
import type { Figures } from "./figures.ts";
import css from "./overview.module.css";

export function Tiles({ figures }: { figures: Figures }) {
  const { t, span, count } = useWords();
  const { least, leastOf } = useCounts();
  const { ready, live, ended, failed, dead, groups, workers } = figures;
  const { overdue, running, failures, waiting, working, capacity, letters, measured, lateMost, isAlone } = figures;
  return (
    <div className={css.tiles}>
      <Tile
        name={t("overview.overdue")}
        of={[ready]}
        value={least(overdue)}
        tone={overdue.n > 0 ? "bad" : "ok"}
        more={t("overview.overdueMore")}
        to="/runs"
        search={{ state: "ready" }}
      />
      <Tile
        name={t("overview.late")}
        of={[ended]}
        value={lateMost === null ? "–" : span(lateMost)}
        tone={(lateMost ?? 0) > 1_000 ? "late" : "ok"}
        more={t("overview.lateMore", { n: measured })}
        to="/runs"
        search={{}}
      />
      <Tile
        name={t("overview.running")}
        of={[live, groups]}
        value={least(running)}
        tone={running.n > 0 ? "run" : "ok"}
        more={t("overview.runningMore", { n: leastOf(waiting) })}
        to="/runs"
        search={{ state: "claimed" }}
      />
      <Tile
        name={t("overview.failed")}
        of={[failed]}
        value={least(failures)}
        tone={failures.n > 0 ? "bad" : "ok"}
        more={t("overview.failedMore")}
        to="/runs"
        search={{ state: "failed", within: "1h" }}
      />
      <Tile
        name={t("overview.dead")}
        of={[dead]}
        value={count(letters)}
        tone={letters > 0 ? "late" : "ok"}
        more={t("overview.deadMore", { n: dead.data?.total.groups ?? 0 })}
        to="/dead-letters"
        search={{}}
      />
      <Tile
        name={t("overview.workers")}
        of={[workers, live]}
        value={least(working)}
        tone={isAlone ? "bad" : "ok"}
        more={t("overview.workersMore", {
          held: least(running),
          capacity: least(capacity),
        })}
        to="/workers"
        search={{}}
      />
    </div>
  );
}

function Tile({
  name,
  of,
  value,
  more,
  tone,
  to,
  search,
}: {
  name: string;
  /** The answers from which the figure is computed; if one is missing, the figure is unknown. */
  of: { data: unknown; error: unknown }[];
  value: string;
  more: string;
  tone: Tone;
  to: "/runs" | "/workers" | "/dead-letters";
  search: Record<string, string>;
}) {
  const { t } = useWords();
  const { isThere, isLost } = useKnown(of);
  return (
    <Link to={to} search={search} className={css.tile} data-tone={isThere ? tone : "wait"}>
      <span className={css.tileName}>{name}</span>
      <span className={`${css.tileValue} figures`}>{isThere ? value : isLost ? "–" : "…"}</span>
      <span className={css.tileMore}>{isThere ? more : isLost ? t("known.not") : "\u00a0"}</span>
    </Link>
  );
}
