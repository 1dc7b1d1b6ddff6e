import { Link, useParams } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { useWords, type Words } from "../messages/words.ts";
import { CopyCurl } from "../parts/form/copy-curl.tsx";
import { Card, Facts, Page } from "../parts/layout/page.tsx";
import { StateMark, Tag } from "../parts/state/mark.tsx";
import { Shown } from "../parts/state/notice.tsx";
import { RunLink, TaskLink } from "../parts/value/links.tsx";
import { Away, Moment } from "../parts/value/moment.tsx";
import { plain } from "../parts/value/plain.ts";
import { RunActs } from "./acts.tsx";
import type { Run } from "./answers.ts";
import { ComparePrevious } from "./compare/compare-button.tsx";
import { Kept } from "./kept.tsx";
import { labelsText } from "./labels.ts";
import { Log } from "./log/log.tsx";
import { Lateness, RunMark as Mark } from "./marks.tsx";
import { numberOf } from "./number.ts";
import { RunProgress } from "./progress.tsx";
import css from "./run.module.css";
import { isOver, isState } from "./states.ts";
import { useRun } from "./watch.ts";
import { Waterfall } from "./waterfall.tsx";
import { Why } from "./why/why.tsx";

/** The refetch interval: while a run is going on, events report only its end. */
const everyMs = 1_500;

/** Loaded on demand, because the code that lays out graphs is large and most runs do not need it. */
const Family = lazy(() => import("./family/family.tsx").then(({ Family }) => ({ default: Family })));

export function RunScreen() {
  const { t } = useWords();
  const { run: text } = useParams({ from: "/runs/$run" });
  const number = numberOf(text);
  const run = useRun(number, everyMs);
  return (
    <Page
      title={`${t("noun.run")} ${text}`}
      above={
        <>
          <Link to="/runs">{t("screen.runs")}</Link>
          {run.data && (
            <>
              {" / "}
              <Link to="/runs" search={{ task: run.data.task }}>
                {run.data.task}
              </Link>
            </>
          )}
        </>
      }
      below={
        run.data && (
          <span className={css.under}>
            <Mark run={run.data} />
            <TaskLink task={run.data.task} />
            <Away
              at={run.data.ended ?? run.data.started ?? run.data.due}
              past={(run.data.ended ?? run.data.started) !== null}
            />
          </span>
        )
      }
      acts={
        run.data && (
          <>
            <CopyCurl id="getRun" given={{ run: number }} />
            <RunActs run={run.data} />
            <ComparePrevious run={run.data.run} />
          </>
        )
      }
    >
      {number === 0 ? (
        <Shown of={{ data: undefined, error: new Error(t("run.noNumber")), refetch: () => undefined }}>
          {() => null}
        </Shown>
      ) : (
        <Shown of={run}>{(data) => <Whole run={data} />}</Shown>
      )}
    </Page>
  );
}

function Whole({ run }: { run: Run }) {
  const { t, span } = useWords();
  const given = (value: unknown) => value !== null && value !== undefined;
  return (
    <>
      {run.error && (
        <div className={css.error}>
          <strong>{run.error.code ?? t("state.failed")}</strong>
          <p>{plain(run.error.message ?? "")}</p>
          {typeof run.error.stack === "string" && (
            <details>
              <summary>{t("run.stack")}</summary>
              <pre>{plain(run.error.stack)}</pre>
            </details>
          )}
        </div>
      )}
      <Why run={run} />
      <Card title={t("run.course")}>
        {given(run.progress) && <RunProgress value={run.progress} />}
        <Waterfall run={run} />
      </Card>
      {run.relatives.length > 0 && (
        <Suspense>
          <Family run={run.run} />
        </Suspense>
      )}
      {/* The log is above the details, because most users come for the log. */}
      <Card title={t("log.title")} tight>
        <Log key={run.run} run={run.run} live={!isOver(run)} ended={run.ended} attempts={run.attempt} />
      </Card>
      <div className={css.columns}>
        <Card title={t("run.facts")}>
          <Facts
            facts={[
              [t("run.due"), <Moment key="due" at={run.due} exact />],
              [t("run.late"), run.lateMs === null ? "–" : <Lateness key="late" ms={run.lateMs} />],
              ...(run.ownWaitMs ? [[t("run.ownWait"), span(run.ownWaitMs)] as [string, React.ReactNode]] : []),
              [t("run.took"), run.tookMs === null ? "–" : span(run.tookMs)],
              [t("run.attempt"), String(run.attempt)],
              [
                t("run.fence"),
                run.fence === null ? (
                  "–"
                ) : (
                  <span key="fence" className="mono">
                    {run.fence}
                  </span>
                ),
              ],
              [t("noun.worker"), run.node ?? run.addressee ?? "–"],
              [t("run.source"), t(`source.${run.source}`)],
              [t("run.slot"), run.slot === null ? "–" : <Moment key="slot" at={run.slot} />],
              [t("run.version"), String(run.version)],
              [t("run.priority"), String(run.priority)],
              ...(run.key === null
                ? []
                : [
                    [
                      t("run.key"),
                      <span key="key" className="mono">
                        {run.key}
                      </span>,
                    ] as [string, React.ReactNode],
                  ]),
              ...(run.shard === null
                ? []
                : [[t("run.shard"), `${run.shard.index + 1} / ${run.shard.total}`] as [string, string]]),
              ...(Object.keys(run.labels).length === 0
                ? []
                : [[t("run.labels"), plain(labelsText(run.labels))] as [string, string]]),
              ...ownPolicies(run, t),
            ]}
          />
          <Relations run={run} />
        </Card>
        <div className={css.trees}>
          <Card title={t("run.payload")}>
            {given(run.payload) ? (
              <Kept value={run.payload} label={t("run.payload")} />
            ) : (
              <span className="soft">{t("run.noPayload")}</span>
            )}
          </Card>
          <Card title={t("run.result")}>
            {given(run.result) ? (
              <Kept value={run.result} label={t("run.result")} />
            ) : (
              <span className="soft">{t("run.noResult")}</span>
            )}
          </Card>
        </div>
      </div>
      {run.late.length > 0 && (
        <Card title={t("run.refused")} more={<span className="soft">{t("run.refusedTold")}</span>}>
          {run.late.map((late) => (
            <p key={`${late.fence} ${late.at}`}>
              <Moment at={late.at} exact /> · {t("run.fence")} {late.fence} · {late.node ?? "–"} · {late.outcome}
            </p>
          ))}
        </Card>
      )}
    </>
  );
}

/** Lists the number of attempts, the timeout and the expiry that the enqueue call set for this run only. */
function ownPolicies({ overrides, expires }: Run, t: Words["t"]): [string, React.ReactNode][] {
  const facts: [string, React.ReactNode][] = [];
  const { retry, runTimeout } = overrides ?? {};
  const attempts = typeof retry === "object" ? (retry as { attempts?: number } | null)?.attempts : retry;
  if (typeof attempts === "number") facts.push([t("run.ownTries"), t("task.tries", { n: attempts })]);
  if (runTimeout !== undefined) facts.push([t("run.ownTimeout"), runTimeout === null ? "–" : String(runTimeout)]);
  if (expires !== null) facts.push([t("run.expires"), <Moment key="expires" at={expires} />]);
  return facts;
}

function Relations({ run }: { run: Run }) {
  const { t } = useWords();
  if (run.relatives.length === 0 && !run.letter && run.redrives === null) return null;
  return (
    <div className={css.relations}>
      {run.letter && (
        <p>
          <Tag tone="bad">
            {run.letter.state === "open" ? (
              <Link to="/dead-letters" search={{ fingerprint: run.letter.fingerprint }}>
                {t("letter.open")}
              </Link>
            ) : (
              t(`letter.${run.letter.state}`)
            )}
          </Tag>{" "}
          {run.letter.redrivenBy !== null && (
            <>
              {t("letter.by")} <RunLink run={run.letter.redrivenBy} />
            </>
          )}
        </p>
      )}
      {run.redrives !== null && (
        <p>
          {t("run.redrives")} <RunLink run={run.redrives} />
        </p>
      )}
      {run.relatives.map((relative) => (
        <p key={`${relative.relation} ${relative.run}`}>
          <span className="soft">{t(`relation.${relative.relation}`)}</span> <RunLink run={relative.run} />{" "}
          {relative.task} {isState(relative.state) && <StateMark state={relative.state} />}
        </p>
      ))}
    </div>
  );
}
