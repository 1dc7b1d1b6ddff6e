import { IconAlertTriangleFilled, IconCircleCheckFilled, IconCircleXFilled } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useRef } from "react";
import { useAnswer } from "../api/answers.ts";
import type { Answer } from "../api/call.ts";
import { useSees } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { useNow } from "../now.ts";
import { RunLink, TaskLink } from "../parts/links.tsx";
import { Away } from "../parts/moment.tsx";
import { Nothing, Shown } from "../parts/notice.tsx";
import { Card, Page } from "../parts/page.tsx";
import { plain } from "../parts/plain.ts";
import type { Tone } from "../parts/state.tsx";
import { Changed } from "./changed.tsx";
import { LateChart } from "./late-chart.tsx";
import css from "./overview.module.css";

type Run = Answer<"listRuns">["items"][number];

/** Overdue is what should have started and did not, for longer than a start takes. */
const overdueMs = 2_000;
const hourMs = 3_600_000;
const endedShown = 200;
const everyMs = 3_000;
const listed = 8;
const alarmsShown = 100;

export function Overview() {
  const words = useWords();
  const { t, span, count } = words;
  const now = useNow();
  // The hour moves on with the minute, not with every second: each would be another question.
  const since = new Date(Math.floor(now / 60_000) * 60_000 - hourMs).toISOString();
  const live = useAnswer("listRuns", { state: ["claimed", "undecided"], limit: 200 }, { everyMs });
  const ready = useAnswer("listRuns", { state: ["ready"], limit: 100 }, { everyMs });
  const ended = useAnswer("listRuns", { state: ["succeeded", "failed", "cancelled"], limit: endedShown }, { everyMs });
  const asked = useAnswer("listRuns", { state: ["failed"], since, limit: 100 }, { keep: true });
  // With each minute it is another question: while none is answered, the last answer stands, as everywhere.
  const answered = useRef(asked.data);
  if (asked.data) answered.current = asked.data;
  const failed = { data: asked.data ?? answered.current, error: asked.error, refetch: asked.refetch };
  const dead = useAnswer("listDeadGroups", {});
  const coming = useAnswer("listComing", { count: 20 }, { everyMs: 10_000 });
  const groups = useAnswer("listGroups", { limit: 200 }, { everyMs: 5_000 });
  const workers = useAnswer("listWorkers", { limit: 200 }, { everyMs: 5_000 });
  const alarms = useAnswer("listAlarms", { limit: alarmsShown }, { everyMs: 5_000 });
  const cluster = useAnswer("getCluster", {}, { everyMs: 15_000 });

  // Judged by when it was said: what the server said a while ago, and cannot put right now, would all look overdue.
  const saidMs = now - (ready.dataUpdatedAt > 0 ? Math.max(0, Date.now() - ready.dataUpdatedAt) : 0);
  const overdue = (ready.data?.items ?? []).filter(({ due }) => Date.parse(due) < saidMs - overdueMs);
  const undecided = (live.data?.items ?? []).filter(({ state }) => state === "undecided");
  const running = (live.data?.items ?? []).filter(({ state }) => state === "claimed");
  // The earliest come first: with one among them that is not overdue, these are all of them.
  const isOverdueMore = overdue.length > 0 && overdue.length === ready.data?.items.length && ready.data.next !== null;
  const isLiveMore = (live.data?.next ?? null) !== null;
  const isWorkersMore = (workers.data?.next ?? null) !== null;
  /** Of a page that is not the last: so many, and more. */
  const least = (n: number, isMore: boolean) => `${count(n)}${isMore ? "+" : ""}`;
  /** The same in a sentence, which has another form for one. */
  const leastOf = (n: number, isMore: boolean) => (isMore ? least(n, true) : n);
  const waiting = (groups.data?.items ?? []).reduce((sum, group) => sum + group.waiting, 0);
  const capacity = (workers.data?.items ?? []).reduce((sum, worker) => sum + (worker.capacity ?? 0), 0);
  const letters = dead.data?.total.letters ?? 0;
  const late = (ended.data?.items ?? [])
    .flatMap(({ lateMs }) => (lateMs === null ? [] : Math.max(0, lateMs)))
    .sort((a, b) => a - b);
  const lateMost = late[Math.floor(late.length * 0.99)] ?? null;
  const isAlone = workers.data !== undefined && workers.data.items.length === 0;
  const failures = failed.data?.items ?? [];
  // Known ones were looked at by somebody.
  const alarming = (alarms.data?.items ?? []).filter((one) => !one.acknowledged && !one.silencedUntil).length;
  const troubles: [Tone, string, ReactNode][] = [
    ...(cluster.data && !cluster.data.leader
      ? [
          [
            "bad",
            t("overview.noLeader"),
            <Link key="nodes" to="/nodes">
              {t("screen.nodes")}
            </Link>,
          ] as [Tone, string, ReactNode],
        ]
      : []),
    ...(isAlone
      ? [
          [
            "bad",
            t("overview.noWorkers"),
            <Link key="workers" to="/workers">
              {t("screen.workers")}
            </Link>,
          ] as [Tone, string, ReactNode],
        ]
      : []),
    ...(alarming > 0
      ? [
          [
            "late",
            t("overview.alarmsTold", { n: leastOf(alarming, (alarms.data?.next ?? null) !== null) }),
            <Link key="alarms" to="/alarms">
              {t("screen.alarms")}
            </Link>,
          ] as [Tone, string, ReactNode],
        ]
      : []),
    ...(overdue.length > 0
      ? [
          [
            "bad",
            t("overview.overdueTold", { n: leastOf(overdue.length, isOverdueMore) }),
            <Link key="overdue" to="/runs" search={{ state: "ready" }}>
              {t("overview.see")}
            </Link>,
          ] as [Tone, string, ReactNode],
        ]
      : []),
    ...(undecided.length > 0
      ? [
          [
            "late",
            t("overview.undecidedTold", { n: leastOf(undecided.length, isLiveMore) }),
            <Link key="undecided" to="/runs" search={{ state: "undecided" }}>
              {t("overview.see")}
            </Link>,
          ] as [Tone, string, ReactNode],
        ]
      : []),
    ...(failures.length > 0
      ? [
          [
            "late",
            t("overview.failedTold", { n: leastOf(failures.length, (failed.data?.next ?? null) !== null) }),
            <Link key="failed" to="/runs" search={{ state: "failed" }}>
              {t("overview.see")}
            </Link>,
          ] as [Tone, string, ReactNode],
        ]
      : []),
  ];
  const isKnown = ready.data !== undefined && failed.data !== undefined;
  return (
    <Page title={t("screen.overview")} below={cluster.data ? <ClusterLine cluster={cluster.data} /> : "\u00a0"}>
      {isKnown ? (
        <Verdict troubles={troubles} late={lateMost} />
      ) : (
        // As high as what will stand here, so that nothing moves when it comes.
        <section className={css.verdict} data-tone="wait" aria-label={t("overview.verdict")} aria-busy />
      )}
      <div className={css.tiles}>
        <Tile
          name={t("overview.overdue")}
          value={ready.data && least(overdue.length, isOverdueMore)}
          tone={overdue.length > 0 ? "bad" : "ok"}
          more={t("overview.overdueMore")}
          to="/runs"
          search={{ state: "ready" }}
        />
        <Tile
          name={t("overview.late")}
          value={ended.data && (lateMost === null ? "–" : span(lateMost))}
          tone={(lateMost ?? 0) > 1_000 ? "late" : "ok"}
          more={t("overview.lateMore", { n: late.length })}
          to="/runs"
          search={{}}
        />
        <Tile
          name={t("overview.running")}
          value={live.data && least(running.length, isLiveMore)}
          tone={running.length > 0 ? "run" : "ok"}
          more={t("overview.runningMore", { n: leastOf(waiting, (groups.data?.next ?? null) !== null) })}
          to="/runs"
          search={{ state: "claimed" }}
        />
        <Tile
          name={t("overview.failed")}
          value={failed.data && least(failures.length, failed.data.next !== null)}
          tone={failures.length > 0 ? "bad" : "ok"}
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
          value={workers.data && least(workers.data.items.length, isWorkersMore)}
          tone={isAlone ? "bad" : "ok"}
          more={t("overview.workersMore", {
            held: least(running.length, isLiveMore),
            capacity: least(capacity, isWorkersMore),
          })}
          to="/workers"
          search={{}}
        />
      </div>
      <Card
        title={t("overview.chart", { n: endedShown })}
        more={<span className="soft">{t("overview.chartTold")}</span>}
      >
        <div className={css.chartPlace}>
          <Shown of={ended} rows={5}>
            {({ items }) =>
              items.length === 0 ? (
                <Nothing title={t("runs.none")}>{t("overview.chartNone")}</Nothing>
              ) : (
                <LateChart runs={items} />
              )
            }
          </Shown>
        </div>
      </Card>
      <div className={css.lists}>
        <Card title={t("overview.next")} more={<Link to="/tasks">{t("screen.tasks")}</Link>}>
          <Shown of={coming}>
            {(data) => <Coming coming={data.coming} ready={ready.data?.items ?? []} now={now} />}
          </Shown>
        </Card>
        <Card
          title={t("overview.failing")}
          more={
            <Link to="/runs" search={{ state: "failed" }}>
              {t("overview.see")}
            </Link>
          }
        >
          <Shown of={failed}>{(data) => <Failing runs={data.items} />}</Shown>
        </Card>
        <Changes />
      </div>
    </Page>
  );
}

function ClusterLine({ cluster: { leader, term, node, version } }: { cluster: Answer<"getCluster"> }) {
  const { t } = useWords();
  return (
    <>
      {leader ? t("overview.leads", { node: leader.node, term }) : t("overview.noLeader")} ·{" "}
      {t("overview.answers", { node })} · {version}
    </>
  );
}

function Verdict({ troubles, late }: { troubles: [Tone, string, ReactNode][]; late: number | null }) {
  const { t, span } = useWords();
  const worst = troubles.some(([tone]) => tone === "bad") ? "bad" : troubles.length > 0 ? "late" : "ok";
  const Icon = worst === "bad" ? IconCircleXFilled : worst === "late" ? IconAlertTriangleFilled : IconCircleCheckFilled;
  return (
    <section className={css.verdict} data-tone={worst} aria-label={t("overview.verdict")}>
      <Icon size={30} aria-hidden />
      <div>
        <p className={css.said}>{t(`overview.is.${worst}`)}</p>
        {troubles.length === 0 ? (
          <p className="soft">{late === null ? t("overview.quiet") : t("overview.lateTold", { span: span(late) })}</p>
        ) : (
          <ul>
            {troubles.map(([tone, text, link]) => (
              <li key={text} data-tone={tone}>
                {text} {link}
              </li>
            ))}
          </ul>
        )}
      </div>
    </section>
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

/** What is planned already, and the slots behind it, as one list. */
function Coming({ coming, ready, now }: { coming: Answer<"listComing">["coming"]; ready: Run[]; now: number }) {
  const { t, clock } = useWords();
  const soon = [
    ...ready.filter(({ due }) => Date.parse(due) >= now - 1_000).map(({ task, due, run }) => ({ task, at: due, run })),
    ...coming
      .filter(({ next }) => Date.parse(next) >= now - 1_000)
      .map(({ task, next }) => ({ task, at: next, run: null })),
  ].sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
  // Each task once, when it fires first: one that fires every second would fill the list.
  const seen = new Set<string>();
  const shown = soon.filter(({ task }) => !seen.has(task) && seen.add(task)).slice(0, listed);
  if (shown.length === 0) return <Nothing title={t("overview.nothingNext")}>{t("overview.nothingNextTold")}</Nothing>;
  return (
    <ul className={css.rows}>
      {shown.map(({ task, at, run }) => (
        <li key={`${task} ${at} ${run}`}>
          <span className={`${css.when} figures`}>{clock(Date.parse(at))}</span>
          <span className="cut">
            <TaskLink task={task} />
          </span>
          <span className="soft">
            <Away at={at} />
          </span>
        </li>
      ))}
    </ul>
  );
}

/** Which tasks failed, the most often first. */
function Failing({ runs }: { runs: Run[] }) {
  const { t } = useWords();
  if (runs.length === 0) return <Nothing title={t("overview.noneFailing")}>{t("overview.noneFailingTold")}</Nothing>;
  const tasks = new Map<string, Run[]>();
  for (const run of runs) tasks.set(run.task, [...(tasks.get(run.task) ?? []), run]);
  const sorted = [...tasks].sort(([, a], [, b]) => b.length - a.length).slice(0, listed);
  return (
    <ul className={css.rows}>
      {sorted.map(([task, [last, ...others]]) => (
        <li key={task}>
          <span className={`${css.times} figures`}>{others.length + 1} ×</span>
          <span className="cut">
            <TaskLink task={task} />
          </span>
          {last && <RunLink run={last.run} />}
          <span className={`${css.message} soft cut`} title={last?.error?.message}>
            {plain(last?.error?.message ?? last?.error?.code ?? "")}
          </span>
        </li>
      ))}
    </ul>
  );
}

function Changes() {
  const { t } = useWords();
  const sees = useSees("admin", true);
  return (
    <Card title={t(sees ? "overview.changed" : "overview.operations")}>
      <Changed audit={sees} />
    </Card>
  );
}
