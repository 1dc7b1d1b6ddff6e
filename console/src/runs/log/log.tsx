import { useNavigate, useSearch } from "@tanstack/react-router";
import type { Filter } from "../../filter.ts";
import { useWords } from "../../messages/words.ts";
import { useTyped } from "../../parts/form/filters.tsx";
import { Trouble, Waiting } from "../../parts/state/notice.tsx";
import { Bar } from "./bar.tsx";
import { DownloadButton } from "./download-button.tsx";
import { useHits } from "./hits.ts";
import { type Level, levels } from "./levels.ts";
import { useLogLines } from "./lines.ts";
import css from "./log.module.css";
import { useView } from "./view.ts";
import { Window } from "./window.tsx";

/** @param attempts the number of attempts so far */
export function Log({
  run,
  live,
  ended,
  attempts,
}: {
  run: number;
  live: boolean;
  ended: string | null;
  attempts: number;
}) {
  const { t } = useWords();
  const search = useSearch({ from: "/runs/$run" });
  const navigate = useNavigate({ from: "/runs/$run" });
  const set = (change: Filter) =>
    void navigate({ search: (before: Filter) => ({ ...before, ...change }), replace: true });
  const least: Level = levels.find((level) => level === search.level) ?? "debug";
  const asked = Number(search.attempt);
  const attempt = Number.isSafeInteger(asked) && asked >= 1 && asked <= attempts ? asked : undefined;
  const only = { least, attempt };
  const [find, setFind] = useTyped(search.find ?? "", 180, (find) => set({ find }));
  const read = useLogLines(run, { live, ended }, only);
  const { lines, before, after, reading, error, again } = read;
  const view = useView(read, live);
  const hits = useHits({ run, live, only, find, lines, isWhole: !before && !after && !reading }, view.to);
  return (
    <>
      <Bar
        find={find}
        onFind={(text) => {
          hits.restart();
          setFind(text);
        }}
        hits={hits}
        least={least}
        onLeast={(level) => set({ level: level === "debug" ? undefined : level })}
        attempts={attempts}
        attempt={attempt}
        onAttempt={(chosen) => set({ attempt: chosen === undefined ? undefined : String(chosen) })}
        download={<DownloadButton run={run} only={only} />}
        live={live}
        view={view}
        count={lines.length}
        isWhole={!before && !after}
      />
      {error !== undefined && (
        <div className={css.trouble}>
          <Trouble error={error} again={again} small />
        </div>
      )}
      {lines.length === 0 ? (
        reading ? (
          <Waiting rows={4} height={14} />
        ) : (
          error === undefined && (
            <p className={css.told}>
              {least !== "debug" || attempt !== undefined
                ? t("log.noneOfThese")
                : live
                  ? t("log.noneYet")
                  : t("log.none")}
            </p>
          )
        )
      ) : (
        <Window lines={lines} view={view} find={find} hit={hits.hit} />
      )}
    </>
  );
}
