import { Button, Progress } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { useReach } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { Card } from "../parts/layout/page.tsx";
import { Tag } from "../parts/state/mark.tsx";
import type { ListedRun } from "../runs/answers.ts";
import type { Worker, WorkerGroup } from "./answers.ts";
import { roomOf } from "./group-room.ts";
import { Waits } from "./group-waits.tsx";
import { Limit } from "./limit.tsx";
import css from "./workers.module.css";

/** The server counts the waiting runs of a group up to this number. */
const countedWaiting = 1_000;

/** A group: its limit or capacity, its runs in progress, the runs that wait and the reason, and below them its workers (`children`). */
export function GroupCard({
  group,
  workers,
  isMore,
  first,
  children,
}: {
  group: WorkerGroup;
  workers: Worker[];
  /** True if further workers were not read, so that the capacity may be larger. */
  isMore: boolean;
  /** The waiting run of the group that was due first; undefined if none waits, or if it is not known yet. */
  first: ListedRun | undefined;
  children: ReactNode;
}) {
  const { t, count } = useWords();
  const reach = useReach("operator");
  const [isLimiting, setLimiting] = useState(false);
  const { name, limit, claimed, waiting, tasks } = group;
  const room = roomOf(group, workers);
  const isFull = room !== null && !isMore && claimed >= room && claimed > 0;
  return (
    <Card
      className={css.group}
      title={<span className={css.name}>{name}</span>}
      more={
        group.workers === 0 && tasks > 0 ? (
          <Tag tone="bad">{t("workers.nobody")}</Tag>
        ) : isFull ? (
          <Tag tone="late">{t("fleet.full")}</Tag>
        ) : undefined
      }
    >
      <div className={css.figures}>
        <Figure name={t("workers.claimed")} value={count(claimed)}>
          {room === null ? t("fleet.roomUnknown") : t("workers.of", { n: `${count(room)}${isMore ? "+" : ""}` })}
          {room !== null && room > 0 && (
            <Progress
              value={(100 * claimed) / room}
              aria-label={t("fleet.loadOf", { group: name })}
              color={isFull ? "var(--c-late-fill)" : "var(--c-run-fill)"}
            />
          )}
        </Figure>
        <Figure
          name={t("workers.waiting")}
          value={waiting >= countedWaiting ? `${count(countedWaiting)}+` : count(waiting)}
        >
          {t("fleet.waitingTold")}
        </Figure>
        <Figure name={t("workers.limit")} value={limit === null ? t("workers.noLimit") : count(limit)}>
          {reach.on(name) && (
            <Button
              size="compact-xs"
              variant="default"
              onClick={() => setLimiting(true)}
              aria-label={t("workers.changeOf", { group: name })}
            >
              {t("workers.change")}
            </Button>
          )}
        </Figure>
        <Figure name={t("screen.workers")} value={count(group.workers)}>
          {t("fleet.live")}
        </Figure>
        <Figure name={t("screen.tasks")} value={count(tasks)}>
          <Link to="/tasks" search={{ group: name }}>
            {t("overview.see")}
          </Link>
        </Figure>
      </div>
      {first && <Waits first={first} />}
      {children}
      {isLimiting && <Limit group={group} onClose={() => setLimiting(false)} />}
    </Card>
  );
}

function Figure({ name, value, children }: { name: string; value: string; children: ReactNode }) {
  return (
    <div className={css.figure}>
      <span className="soft">{name}</span>
      <b className="figures">{value}</b>
      <span className="soft">{children}</span>
    </div>
  );
}
