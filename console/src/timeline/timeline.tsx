import { SegmentedControl } from "@mantine/core";
import { IconClockExclamation } from "@tabler/icons-react";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo, useRef } from "react";
import { useAnswer } from "../api/answers.ts";
import type { Filter } from "../filter.ts";
import { useWords } from "../messages/words.ts";
import { Filters, GroupField } from "../parts/form/filters.tsx";
import { Card, Columns, Page } from "../parts/layout/page.tsx";
import { Nothing, Shown } from "../parts/state/notice.tsx";
import { globOf, NameField } from "../tasks/name-field.tsx";
import { Detail } from "./detail.tsx";
import { HeatMap } from "./heat-map.tsx";
import { daysOf, type Hour, isoIn, meetings } from "./hours.ts";
import type { Line } from "./line.ts";
import { Spread } from "./spread.tsx";
import css from "./timeline.module.css";

const minuteMs = 60_000;
/** The refetch interval: the timeline begins with the present minute. */
const everyMs = 60_000;
const choices = ["1", "3", "7", "14"];

export function TimelineScreen() {
  const { t } = useWords();
  const search = useSearch({ from: "/timeline" });
  const navigate = useNavigate({ from: "/timeline" });
  const filter = useCallback(
    (change: Filter) => void navigate({ search: (before: Filter) => ({ ...before, ...change }), replace: true }),
    [navigate],
  );
  const days = choices.includes(search.days ?? "") ? (search.days as string) : "7";
  const given = {
    days: Number(days),
    ...(search.matching ? { matching: globOf(search.matching) } : {}),
    ...(search.group ? { group: search.group } : {}),
  };
  const line = useAnswer("getTimeline", given, { everyMs, keep: true });
  const isFiltered = Boolean(search.matching || search.group);
  return (
    <Page title={t("screen.timeline")} below={t("timeline.lead")}>
      <Filters onClear={isFiltered ? () => filter({ matching: undefined, group: undefined }) : undefined}>
        <NameField
          label={t("tasks.name")}
          hint={t("tasks.nameHint")}
          value={search.matching ?? ""}
          onChange={(matching) => filter({ matching })}
        />
        <GroupField value={search.group} onChange={(group) => filter({ group })} />
        <SegmentedControl
          aria-label={t("timeline.days")}
          value={days}
          onChange={(chosen) => filter({ days: chosen === "7" ? undefined : chosen })}
          data={choices.map((value) => ({ value, label: t("timeline.nDays", { n: Number(value) }) }))}
        />
      </Filters>
      <Shown of={line} rows={9}>
        {(data) => <Whole line={data} given={given} search={search} onFilter={filter} />}
      </Shown>
    </Page>
  );
}

function Whole({
  line,
  given,
  search,
  onFilter,
}: {
  line: Line;
  given: { days: number; matching?: string; group?: string };
  search: Filter;
  onFilter: (change: Filter) => void;
}) {
  const words = useWords();
  const { t } = words;
  const fromMs = Date.parse(line.from);
  const days = useMemo(() => daysOf(line, words.zone), [line, words.zone]);
  const most = useMemo(() => line.fires.reduce((a, b) => Math.max(a, b), 0), [line]);
  const least = useMemo(() => line.fires.reduce((a, b) => Math.min(a, b)), [line]);
  const fullest = useMemo(() => line.fires.indexOf(most), [line, most]);
  const placeOf = (iso: string | undefined) => {
    const place = iso === undefined ? Number.NaN : Math.floor((Date.parse(iso) - fromMs) / minuteMs);
    return place >= 0 && place < line.fires.length ? place : undefined;
  };
  const isoOf = (place: number) => isoIn(line, place);
  // If the address selects no minute, the hour with the fullest minute is shown.
  const at = placeOf(search.at) ?? fullest;
  const minute = placeOf(search.minute);
  const hour =
    at === undefined ? undefined : days.flatMap(({ hours }) => hours).find(({ first, end }) => at >= first && at < end);
  const detail = useRef<HTMLDivElement>(null);
  const see = () => requestAnimationFrame(() => detail.current?.scrollIntoView({ block: "nearest" }));
  // biome-ignore lint/correctness/useExhaustiveDependencies: `see` is new at each render; the memoised map needs a stable `choose`.
  const choose = useCallback(
    (one: Hour) => {
      onFilter({ at: new Date(fromMs + one.first * minuteMs).toISOString(), minute: undefined });
      see();
    },
    [onFilter, fromMs],
  );
  const numbers = search.view === "numbers";
  if (most === 0)
    return (
      <Card>
        <Nothing title={t("timeline.none")}>
          <p>{t("timeline.noneTold")}</p>
          <Told line={line} />
        </Nothing>
      </Card>
    );
  return (
    <>
      <Card
        title={t("timeline.map")}
        more={
          <SegmentedControl
            size="xs"
            aria-label={t("timeline.view")}
            value={numbers ? "numbers" : "stripes"}
            onChange={(view) => onFilter({ view: view === "numbers" ? view : undefined })}
            data={[
              { value: "stripes", label: t("timeline.stripes") },
              { value: "numbers", label: t("timeline.numbers") },
            ]}
          />
        }
      >
        <HeatMap line={line} days={days} most={most} least={least} numbers={numbers} chosen={hour} onChoose={choose} />
        <p className={css.told}>
          {t("timeline.mapTold", { zone: words.zone })} <Told line={line} />
        </p>
        <Clocks line={line} />
      </Card>
      <Columns shares={[3, 2]}>
        <div className={css.column} ref={detail}>
          <Detail
            line={line}
            given={given}
            hour={hour}
            minute={minute}
            onMinute={(place) => onFilter({ minute: place === undefined ? undefined : isoOf(place) })}
          />
        </div>
        <div className={css.column}>
          <Fullest
            line={line}
            onChoose={(place) => {
              onFilter({ at: isoOf(place), minute: isoOf(place) });
              see();
            }}
          />
          <Spread given={given} />
        </div>
      </Columns>
    </>
  );
}

function Told({ line: { foretold, paused, unforeseen, left } }: { line: Line }) {
  const { t } = useWords();
  const parts = [
    t("timeline.foretold", { n: foretold }),
    ...(paused > 0 ? [t("timeline.paused", { n: paused })] : []),
    ...(unforeseen > 0 ? [t("timeline.unforeseen", { n: unforeseen })] : []),
    ...(left > 0 ? [t("timeline.left", { n: left })] : []),
  ];
  return <span className="soft">{parts.join(" · ")}</span>;
}

function Clocks({ line: { clockChanges } }: { line: Line }) {
  const words = useWords();
  const { t, count } = words;
  if (clockChanges.length === 0) return null;
  return (
    <ul className={css.clocks} aria-label={t("timeline.clocks")}>
      {clockChanges.map(({ at, zone, byMinutes, tasks }) => (
        <li key={`${at} ${zone}`}>
          <IconClockExclamation size={16} aria-hidden />
          {words.when(Date.parse(at))} ·{" "}
          {t(byMinutes > 0 ? "timeline.forward" : "timeline.back", {
            zone,
            n: Math.abs(byMinutes),
            tasks: count(tasks),
          })}
        </li>
      ))}
    </ul>
  );
}

/** Lists the times of day at which the most runs coincide, each with the number of days on which this count is reached. */
function Fullest({ line, onChoose }: { line: Line; onChoose: (place: number) => void }) {
  const words = useWords();
  const { t, count } = words;
  const fromMs = Date.parse(line.from);
  const fullest = useMemo(() => meetings(line, words.zone), [line, words.zone]);
  const most = fullest[0]?.fires ?? 1;
  return (
    <Card title={t("timeline.full")}>
      {fullest.length === 0 ? (
        <p className="soft">{t("timeline.noneMeet")}</p>
      ) : (
        <ul className={css.fullest}>
          {fullest.map(({ fires, tasks, place, days }) => (
            <li key={place}>
              <button type="button" onClick={() => onChoose(place)}>
                <span className="figures">
                  <b>{words.minute(fromMs + place * minuteMs)}</b>
                </span>
                <span className={css.meter} aria-hidden>
                  <span style={{ width: `${(100 * fires) / most}%` }} />
                </span>
                <span className="figures">{t("timeline.meets", { runs: count(fires), n: tasks })}</span>
                <span className="figures soft">
                  {days === 1 ? words.day(fromMs + place * minuteMs) : t("timeline.onDays", { n: days })}
                </span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
