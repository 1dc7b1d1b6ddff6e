import { Progress } from "@mantine/core";
import type { ReactNode } from "react";
import { useReach } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { Card, Facts } from "../parts/layout/page.tsx";
import { Tag } from "../parts/state/mark.tsx";
import { Away } from "../parts/value/moment.tsx";
import type { Drained, Worker } from "./answers.ts";
import { By, DrainOrResume } from "./drain.tsx";
import css from "./workers.module.css";

/** A worker with a larger share of its capacity in use than this is coloured as nearly full. */
const nearlyFull = 0.9;

export function WorkerCard({ worker, drained }: { worker: Worker; drained: Drained | undefined }) {
  const { t, count } = useWords();
  const { everywhere } = useReach("operator");
  const { capacity, held } = worker;
  const share = capacity === null || capacity === 0 ? 0 : held / capacity;
  const labels = Object.entries(worker.labels);
  return (
    <Card
      title={<span className={css.name}>{worker.node}</span>}
      more={
        worker.silent ? (
          <Tag tone="bad">{t("workers.silent")}</Tag>
        ) : drained && held === 0 ? (
          <Tag tone="wait">{t("workers.drained")}</Tag>
        ) : worker.draining ? (
          <Tag tone="late">{t("workers.draining")}</Tag>
        ) : (
          <Tag tone="ok">{t("workers.alive")}</Tag>
        )
      }
      className={css.worker}
    >
      <div className={css.load}>
        <span className="figures">
          <b>{count(held)}</b> {capacity === null ? t("workers.held") : t("workers.of", { n: capacity })}
        </span>
        <Progress
          value={100 * share}
          aria-label={t("workers.load")}
          color={share >= nearlyFull ? "var(--c-late-fill)" : "var(--c-run-fill)"}
        />
      </div>
      <Facts
        facts={[
          [t("workers.groups"), worker.groups.join(", ") || "–"],
          [t("workers.host"), `${worker.host} · ${worker.pid}`],
          [t("workers.since"), <Away key="since" at={worker.started} past />],
          [t("workers.seen"), <Away key="seen" at={worker.seen} past />],
          [t("workers.version"), worker.version],
          ...(labels.length > 0
            ? [[t("workers.labels"), labels.map(([name, value]) => `${name}=${value}`).join(", ")] as [string, string]]
            : []),
          ...(drained ? [[t("workers.drainedBy"), <By key="by" drained={drained} />] as [string, ReactNode]] : []),
        ]}
      />
      {everywhere && <DrainOrResume node={worker.node} drained={drained !== undefined} held={held} />}
    </Card>
  );
}
