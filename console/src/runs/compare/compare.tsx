/** Two runs side by side. Both numbers are in the address, so that a comparison can be shared. */
import { Button, TextInput } from "@mantine/core";
import { IconEqualNot } from "@tabler/icons-react";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import { useAnswer } from "../../api/answers.ts";
import { useWords } from "../../messages/words.ts";
import { Card, Page } from "../../parts/layout/page.tsx";
import { Nothing, Shown } from "../../parts/state/notice.tsx";
import { Table } from "../../parts/table/table.tsx";
import { Diff } from "../../parts/value/diff.tsx";
import { RunLink, TaskLink } from "../../parts/value/links.tsx";
import { isReadable } from "../../tasks/run/payload.ts";
import { Changes } from "../../tasks/versions.tsx";
import type { Run } from "../answers.ts";
import { Kept } from "../kept.tsx";
import { numberOf } from "../number.ts";
import { useRun } from "../watch.ts";
import css from "./compare.module.css";
import { factsOf } from "./facts.ts";
import { Logs } from "./logs.tsx";

const everyMs = 3_000;

export function CompareScreen() {
  const { t } = useWords();
  const { run: text } = useParams({ from: "/runs/$run/compare" });
  const { with: other } = useSearch({ from: "/runs/$run/compare" });
  const run = useRun(numberOf(text), everyMs);
  const otherRun = useRun(numberOf(other ?? ""), everyMs);
  return (
    <Page
      title={other === undefined ? t("compare.title", { run: text }) : t("compare.titleWith", { run: text, other })}
      above={
        <>
          <Link to="/runs">{t("screen.runs")}</Link>
          {" / "}
          <Link to="/runs/$run" params={{ run: text }}>
            {text}
          </Link>
        </>
      }
      below={run.data && <TaskLink task={run.data.task} />}
      acts={<Another key={other} run={text} other={other ?? ""} />}
    >
      {numberOf(text) === 0 ? (
        <Nothing title={t("run.noNumber")} />
      ) : (
        <Shown of={run}>
          {(data) => {
            if (other === undefined) return <Previous run={data} />;
            if (numberOf(other) === 0) return <Nothing title={t("run.noNumber")} />;
            return <Shown of={otherRun}>{(was) => <Both key={other} runs={[was, data]} />}</Shown>;
          }}
        </Shown>
      )}
    </Page>
  );
}

/** The field for the number of the other run. */
function Another({ run, other }: { run: string; other: string }) {
  const { t } = useWords();
  const navigate = useNavigate();
  const [typed, setTyped] = useState(other);
  const isNumber = numberOf(typed) > 0;
  return (
    <form
      className={css.another}
      onSubmit={(event) => {
        event.preventDefault();
        if (isNumber) void navigate({ to: "/runs/$run/compare", params: { run }, search: { with: typed.trim() } });
      }}
    >
      <TextInput
        aria-label={t("compare.other")}
        placeholder={t("compare.other")}
        inputMode="numeric"
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
      <Button type="submit" variant="default" disabled={!isNumber || typed.trim() === other}>
        {t("compare.act")}
      </Button>
    </form>
  );
}

/** Finds the last run of the task that succeeded before this run ended, and navigates to the comparison with it. */
function Previous({ run }: { run: Run }) {
  const { t } = useWords();
  const navigate = useNavigate();
  const before = run.ended === null ? {} : { until: run.ended };
  const found = useAnswer("listRuns", { task: run.task, state: ["succeeded"], limit: 1, ...before });
  const other = found.data?.items[0]?.run;
  useEffect(() => {
    if (other === undefined) return;
    const to = { to: "/runs/$run/compare", params: { run: String(run.run) } } as const;
    void navigate({ ...to, search: { with: String(other) }, replace: true });
  }, [other, run.run, navigate]);
  return (
    <Shown of={found}>
      {({ items }) => (items.length > 0 ? null : <Nothing title={t("compare.none")}>{t("compare.noneTold")}</Nothing>)}
    </Shown>
  );
}

function Both({ runs }: { runs: [Run, Run] }) {
  const { t } = useWords();
  const [a, b] = runs;
  const isReadableBoth = (part: "payload" | "result") => runs.every((run) => isReadable(run[part]));
  const given = (value: unknown) => value !== null && value !== undefined;
  const part = (part: "payload" | "result") =>
    !runs.some((run) => given(run[part])) ? (
      <span className="soft">{t(part === "payload" ? "run.noPayload" : "run.noResult")}</span>
    ) : isReadableBoth(part) ? (
      <Diff was={a[part] ?? null} is={b[part] ?? null} label={t(`run.${part}`)} />
    ) : (
      <Sides>
        {runs.map((run) => (
          <Kept key={run.run} value={run[part]} label={t(`run.${part}`)} />
        ))}
      </Sides>
    );
  return (
    <>
      <Card title={t("compare.facts")} tight>
        <Facts runs={runs} />
      </Card>
      {runs.some(({ error }) => error !== null) && (
        <Card title={t("run.error")} more={<span className="soft">{t("compare.wasIs")}</span>}>
          <Diff was={errorOf(a)} is={errorOf(b)} label={t("run.error")} />
        </Card>
      )}
      <Card title={t("run.payload")} more={<span className="soft">{t("compare.wasIs")}</span>}>
        {part("payload")}
      </Card>
      <Options runs={runs} />
      <Card title={t("run.result")} more={<span className="soft">{t("compare.wasIs")}</span>}>
        {part("result")}
      </Card>
      <Card title={t("log.title")} more={<span className="soft">{t("compare.logTold")}</span>} tight>
        <Logs runs={runs} />
      </Card>
    </>
  );
}

/** The error without its stack, whose lines change with each release. */
const errorOf = ({ error }: Run) => (error === null ? {} : { code: error.code, message: error.message });

function Sides({ children }: { children: ReactNode }) {
  return <div className={css.sides}>{children}</div>;
}

function Facts({ runs }: { runs: [Run, Run] }) {
  const words = useWords();
  const { t } = words;
  return (
    <Table
      label={t("compare.facts")}
      className={css.facts}
      heads={[t("compare.fact"), t("compare.first"), t("compare.second")]}
    >
      <tr>
        <th scope="row">{t("noun.run")}</th>
        {runs.map((run) => (
          <td key={run.run}>
            <RunLink run={run.run} />
          </td>
        ))}
      </tr>
      {factsOf(runs, words).map(({ name, texts: [first, second], differs, ratio }) => (
        <tr key={name} data-differs={differs || undefined}>
          <th scope="row">{name}</th>
          <td className="figures">{first}</td>
          <td className="figures">
            {differs && (
              <>
                <IconEqualNot size={15} aria-hidden className={css.sign} />
                <span className="unseen">{t("compare.differs")} </span>
              </>
            )}
            {second}
            {ratio !== undefined && (
              <span className="soft">
                {" "}
                · {t("compare.ratio", { ratio: words.count(Number(ratio.toPrecision(2))) })}
              </span>
            )}
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** The task's options by which each run ran, where these differ. */
function Options({ runs: [a, b] }: { runs: [Run, Run] }) {
  const { t } = useWords();
  const isOther = a.task === b.task && a.version !== b.version;
  const diff = useAnswer("diffTask", { task: a.task, from: a.version, to: b.version }, { enabled: isOther });
  if (a.task !== b.task) return null;
  return (
    <Card title={t("compare.options")} more={<span className="soft">{t("compare.wasIs")}</span>}>
      {isOther ? (
        <Shown of={diff} rows={2}>
          {({ changes }) => <Changes changes={changes} />}
        </Shown>
      ) : (
        <p className="soft">{t("compare.sameVersion", { version: String(a.version) })}</p>
      )}
    </Card>
  );
}
