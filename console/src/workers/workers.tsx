import { Button, NumberInput, Progress, Select } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { type Answer, call } from "../api/call.ts";
import { useReach } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { Card, Facts, Page } from "../parts/layout/page.tsx";
import { Tag } from "../parts/state/mark.tsx";
import { Nothing, Shown } from "../parts/state/notice.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { More } from "../parts/table/more.tsx";
import { usePages } from "../parts/table/pages.ts";
import { Table } from "../parts/table/table.tsx";
import { Away } from "../parts/value/moment.tsx";
import { Lost } from "./lost.tsx";
import css from "./workers.module.css";

type Worker = Answer<"listWorkers">["items"][number];
type Drained = Answer<"listDrained">["items"][number];
type WorkerGroup = Answer<"listGroups">["items"][number];

const everyMs = 2_000;

export function Workers() {
  const { t } = useWords();
  const { group } = useSearch({ from: "/workers" });
  const navigate = useNavigate({ from: "/workers" });
  const workers = usePages("listWorkers", { limit: 100, ...(group ? { group } : {}) }, { everyMs });
  const groups = useAnswer("listGroups", { limit: 200 }, { everyMs });
  // The server refuses this list to users without access to all namespaces. The page then omits who drained a worker, and why.
  const drained = useAnswer("listDrained", { limit: 200 }, { everyMs }).data?.items;
  return (
    <Page title={t("screen.workers")} below={t("workers.lead")}>
      <Card title={t("workers.groups")} tight>
        <Shown of={groups} rows={3}>
          {({ items }) => (items.length === 0 ? <Nothing title={t("workers.noGroups")} /> : <Groups groups={items} />)}
        </Shown>
      </Card>
      <search aria-label={t("filter.label")}>
        <Select
          w={260}
          maw="100%"
          aria-label={t("tasks.group")}
          placeholder={t("tasks.anyGroup")}
          data={groups.data?.items.map(({ name }) => name) ?? []}
          value={group ?? null}
          onChange={(chosen) => void navigate({ search: chosen ? { group: chosen } : {}, replace: true })}
          clearable
          clearButtonProps={{ "aria-label": t("filter.clear") }}
        />
      </search>
      <Lost />
      <Absent drained={drained} />
      <Shown of={workers} rows={4}>
        {(rows) =>
          rows.length === 0 ? (
            <Nothing title={t("workers.none")}>
              <p>{t("workers.noneTold")}</p>
              <code>carillon worker tasks.ts</code>
            </Nothing>
          ) : (
            <>
              <ul className={css.workers}>
                {rows.map((worker) => (
                  <li key={worker.sessionId}>
                    <One worker={worker} drained={drained?.find(({ node }) => node === worker.node)} />
                  </li>
                ))}
              </ul>
              <More of={workers} />
            </>
          )
        }
      </Shown>
    </Page>
  );
}

/** A worker with a larger share of its capacity in use than this is coloured as nearly full. */
const nearlyFull = 0.9;

function One({ worker, drained }: { worker: Worker; drained: Drained | undefined }) {
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

function By({ drained: { by, since, why } }: { drained: Drained }) {
  return (
    <>
      {by}, <Away at={since} past />
      {why === "" ? "" : `: ${why}`}
    </>
  );
}

/** Lists drained worker names without a process. Without this list, an operator could not see why a new process gets no runs. */
function Absent({ drained = [] }: { drained: Drained[] | undefined }) {
  const { t } = useWords();
  const { everywhere } = useReach("operator");
  const absent = drained.filter(({ held }) => held === null);
  if (absent.length === 0) return null;
  return (
    <Card title={t("workers.absent")} tight>
      <Table label={t("workers.absent")} className={css.absent} heads={[t("workers.name"), t("workers.drainedBy")]}>
        {absent.map((one) => (
          <tr key={one.node}>
            <th scope="row">{one.node}</th>
            <td>
              <By drained={one} />
              {everywhere && <DrainOrResume node={one.node} drained held={0} />}
            </td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}

function DrainOrResume({ node, drained, held }: { node: string; drained: boolean; held: number }) {
  const { t, count } = useWords();
  const [asks, setAsks] = useState(false);
  const act = async (id: "drainNode" | "resumeNode", reason: string | undefined, key?: string) => {
    await call(id, { node, reason }, key === undefined ? {} : { key });
    for (const list of ["listDrained", "listWorkers", "listNodes"] as const) outdate(list);
  };
  const [wanted, back] = drained ? (["resumeNode", "drainNode"] as const) : (["drainNode", "resumeNode"] as const);
  return (
    <div className={css.acts}>
      <Button
        size="compact-sm"
        variant="default"
        onClick={() => setAsks(true)}
        aria-label={t(drained ? "workers.resumeOf" : "workers.drainOf", { node })}
      >
        {t(drained ? "workers.resume" : "workers.drain")}
      </Button>
      {asks && (
        <Confirm
          title={t(drained ? "workers.resumeOf" : "workers.drainOf", { node })}
          consequence={drained ? t("workers.resumeTold") : t("workers.drainTold", { n: count(held) })}
          act={t(drained ? "workers.resume" : "workers.drain")}
          onDo={async ({ reason, key }) => {
            await act(wanted, reason, key);
            toast({
              text: t(drained ? "workers.resumed" : "workers.drains", { node }),
              undo: () => act(back, t("act.undo")),
            });
          }}
          onClose={() => setAsks(false)}
        />
      )}
    </div>
  );
}

function Groups({ groups }: { groups: WorkerGroup[] }) {
  const { t, count } = useWords();
  const reach = useReach("operator");
  const [limited, setLimited] = useState<WorkerGroup>();
  return (
    <>
      <Table
        label={t("workers.groups")}
        className={css.groups}
        heads={[
          t("tasks.group"),
          t("screen.tasks"),
          t("screen.workers"),
          t("workers.claimed"),
          t("workers.waiting"),
          t("workers.limit"),
        ]}
      >
        {groups.map((group) => (
          <tr key={group.name}>
            <th scope="row">{group.name}</th>
            <td className="figures">{count(group.tasks)}</td>
            <td className="figures">
              {group.workers === 0 && group.tasks > 0 ? (
                <Tag tone="bad">{t("workers.nobody")}</Tag>
              ) : (
                count(group.workers)
              )}
            </td>
            <td className="figures">{count(group.claimed)}</td>
            <td className="figures">{group.waiting >= 1_000 ? "1,000+" : count(group.waiting)}</td>
            <td className="figures">
              {group.limit === null ? t("workers.noLimit") : count(group.limit)}{" "}
              {reach.on(group.name) && (
                <Button
                  size="compact-xs"
                  variant="default"
                  onClick={() => setLimited(group)}
                  aria-label={t("workers.changeOf", { group: group.name })}
                >
                  {t("workers.change")}
                </Button>
              )}
            </td>
          </tr>
        ))}
      </Table>
      {limited && <Limit group={limited} onClose={() => setLimited(undefined)} />}
    </>
  );
}

function Limit({ group, onClose }: { group: WorkerGroup; onClose: () => void }) {
  const { t } = useWords();
  const [limit, setLimit] = useState<number | string>(group.limit ?? "");
  const set = async (wanted: number | null, reason: string | undefined, key?: string) => {
    await call("limitGroup", { group: group.name, limit: wanted, reason }, key === undefined ? {} : { key });
    outdate("listGroups");
  };
  return (
    <Confirm
      title={t("workers.limitTitle", { group: group.name })}
      consequence={t("workers.limitTold")}
      act={t("workers.change")}
      onDo={async ({ reason, key }) => {
        await set(limit === "" ? null : Number(limit), reason, key);
        toast({ text: t("workers.limited", { group: group.name }), undo: () => set(group.limit, t("act.undo")) });
      }}
      onClose={onClose}
    >
      <NumberInput
        mt="md"
        label={t("workers.limit")}
        placeholder={t("workers.noLimit")}
        min={1}
        max={100_000}
        value={limit}
        onChange={setLimit}
      />
    </Confirm>
  );
}
