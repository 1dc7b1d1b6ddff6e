import { Link } from "@tanstack/react-router";
import { useWords } from "../messages/words.ts";
import type { Tone } from "../parts/state/mark.tsx";
import { useCounts } from "./counts.ts";
import type { Figures } from "./figures.ts";
import css from "./overview.module.css";

export function Tiles({ figures }: { figures: Figures }) {
  const { t, span, count } = useWords();
  const { least, leastOf } = useCounts();
  const { since, ready, live, ended, failed, dead, workers } = figures;
  const { overdue, running, failures, waiting, working, capacity, letters, measured, lateMost, isAlone } = figures;
  return (
    <div className={css.tiles}>
      <Tile
        name={t("overview.overdue")}
        value={ready.data && least(overdue)}
        tone={overdue.n > 0 ? "bad" : "ok"}
        more={t("overview.overdueMore")}
        to="/runs"
        search={{ state: "ready" }}
      />
      <Tile
        name={t("overview.late")}
        value={ended.data && (lateMost === null ? "–" : span(lateMost))}
        tone={(lateMost ?? 0) > 1_000 ? "late" : "ok"}
        more={t("overview.lateMore", { n: measured })}
        to="/runs"
        search={{}}
      />
      <Tile
        name={t("overview.running")}
        value={live.data && least(running)}
        tone={running.n > 0 ? "run" : "ok"}
        more={t("overview.runningMore", { n: leastOf(waiting) })}
        to="/runs"
        search={{ state: "claimed" }}
      />
      <Tile
        name={t("overview.failed")}
        value={failed.data && least(failures)}
        tone={failures.n > 0 ? "bad" : "ok"}
        more={t("overview.failedMore")}
        to="/runs"
        search={{ state: "failed", since }}
      />
      <Tile
        name={t("overview.dead")}
        value={dead.data && count(letters)}
        tone={letters > 0 ? "late" : "ok"}
        more={t("overview.deadMore", { n: dead.data?.total.groups ?? 0 })}
        to="/dead-letters"
        search={{}}
      />
      <Tile
        name={t("overview.workers")}
        value={workers.data && least(working)}
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
  value,
  more,
  tone,
  to,
  search,
}: {
  name: string;
  value: string | undefined;
  more: string;
  tone: Tone;
  to: "/runs" | "/workers" | "/dead-letters";
  search: Record<string, string>;
}) {
  return (
    <Link to={to} search={search} className={css.tile} data-tone={tone}>
      <span className={css.tileName}>{name}</span>
      <span className={`${css.tileValue} figures`}>{value ?? "…"}</span>
      <span className={css.tileMore}>{more}</span>
    </Link>
  );
}
