import { Switch } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useAnswer } from "../../api/answers.ts";
import { useWords } from "../../messages/words.ts";
import { Shown } from "../../parts/state/notice.tsx";
import type { Run } from "../answers.ts";
import type { LogLine } from "../log/levels.ts";
import { Message } from "../log/message.tsx";
import css from "./compare.module.css";
import { alone } from "./log-lines.ts";

/** The number of lines of each log that are compared: its last ones, which say how the run ended. */
const linesMost = 300;

export function Logs({ runs }: { runs: [Run, Run] }) {
  const { t } = useWords();
  const [onlyAlone, setOnlyAlone] = useState(false);
  const [a, b] = runs;
  const asked = { limit: linesMost, order: "newest" } as const;
  const [first, second] = [
    useAnswer("listLogs", { run: a.run, ...asked }),
    useAnswer("listLogs", { run: b.run, ...asked }),
  ];
  return (
    <>
      <div className={css.bar}>
        <Switch
          label={t("compare.onlyAlone")}
          checked={onlyAlone}
          onChange={(event) => setOnlyAlone(event.currentTarget.checked)}
        />
      </div>
      <div className={css.sides}>
        {(
          [
            [a, first, second],
            [b, second, first],
          ] as const
        ).map(([{ run }, own, other]) => (
          <section key={run} className={css.log} aria-label={`${t("log.title")} ${run}`}>
            <Link to="/runs/$run" params={{ run: String(run) }}>
              {t("noun.run")} {run}
            </Link>
            <Shown of={own} rows={3}>
              {({ items, next }) => (
                <Lines
                  lines={items.toReversed()}
                  others={other.data?.items.toReversed() ?? []}
                  isCut={next !== null}
                  onlyAlone={onlyAlone}
                />
              )}
            </Shown>
          </section>
        ))}
      </div>
    </>
  );
}

function Lines(props: { lines: LogLine[]; others: LogLine[]; isCut: boolean; onlyAlone: boolean }) {
  const { lines, others, isCut, onlyAlone } = props;
  const { t } = useWords();
  const isAlone = alone(lines, others);
  if (lines.length === 0) return <p className="soft">{t("log.none")}</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard.
    <div className={css.lines} tabIndex={0} role="log" aria-live="off">
      {isCut && <p className="soft">{t("compare.lastLines", { n: lines.length })}</p>}
      {lines.map((line, at) =>
        onlyAlone && !isAlone[at] ? null : (
          <div key={line.id} className={css.line} data-alone={isAlone[at] || undefined} data-level={line.level}>
            <span aria-hidden>{isAlone[at] ? "≠" : ""}</span>
            {isAlone[at] && <span className="unseen">{t("compare.alone")} </span>}
            <span className={css.level}>{t(`log.${line.level}`)}</span>
            <Message line={line} find="" />
          </div>
        ),
      )}
    </div>
  );
}
