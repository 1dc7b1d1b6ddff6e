/**
 * The guide on the overview of a new cluster: four steps from a worker to a first run. A step is done once the cluster has what it asks
 * for. The guide is hidden once a run has ended.
 */
import { Button, SegmentedControl } from "@mantine/core";
import { IconCheck } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useState } from "react";
import { useAnswer } from "../../api/answers.ts";
import { serverUrl } from "../../api/base.ts";
import { useMay, useReach } from "../../api/may.ts";
import { useWords } from "../../messages/words.ts";
import { Card } from "../../parts/layout/page.tsx";
import { Waiting } from "../../parts/state/notice.tsx";
import { Copyable } from "../../parts/value/copyable.tsx";
import { RunLink, TaskLink } from "../../parts/value/links.tsx";
import type { ListedRun } from "../../runs/answers.ts";
import { RunMark } from "../../runs/marks.tsx";
import { type Kind, kinds } from "../../tasks/create/kinds.ts";
import type { Figures } from "../figures.ts";
import { exampleFile, remoteWorker, runCommand, workerCommands } from "./commands.ts";
import css from "./guide.module.css";
import { type Place, type Progress, placesOf, type Step } from "./steps.ts";

const Create = lazy(() => import("../../tasks/create/create.tsx").then(({ Create }) => ({ default: Create })));
const RunNamed = lazy(() => import("../../tasks/run/run-named.tsx").then(({ RunNamed }) => ({ default: RunNamed })));

const everyMs = 3_000;
/** If one of this many tasks has ever ended a run, the cluster is not new, even if no ended run is kept any more. */
const tasksRead = 100;

/** Reads what a new cluster has. Undefined if the cluster is not new, or if that is not known yet. */
function useNewCluster({ ended, workers }: Figures) {
  const isQuiet = ended.data !== undefined && !ended.data.items.some(({ started }) => started !== null);
  const tasks = useAnswer("listTasks", { limit: tasksRead, schedules: false }, { enabled: isQuiet, everyMs });
  const runs = useAnswer("listRuns", { limit: 1 }, { enabled: isQuiet, everyMs });
  if (!isQuiet || !tasks.data || !runs.data || !workers.data) return undefined;
  if (tasks.data.items.some(({ counters }) => counters.succeeded + counters.failed > 0)) return undefined;
  return {
    task: tasks.data.items[0]?.name,
    run: runs.data.items[0],
    workers: workers.data.items.filter(({ silent }) => !silent).map(({ node }) => node),
  };
}

export function Guide({ figures }: { figures: Figures }) {
  const { t } = useWords();
  const found = useNewCluster(figures);
  const [kind, setKind] = useState<Kind>("http");
  if (!found) return null;
  const { task, run, workers } = found;
  const progress: Progress = { workers: workers.length, task, run: run?.run, hasRun: false };
  const places = placesOf(progress);
  return (
    <Card title={t("guide.title")} more={<span className="soft">{t("guide.lead")}</span>}>
      <SegmentedControl
        className={css.kinds}
        aria-label={t("create.kind")}
        value={kind}
        onChange={(next) => setKind(next as Kind)}
        data={kinds.map((one) => ({ value: one, label: t(`create.kind.${one}`) }))}
      />
      <ol className={css.steps}>
        <Part
          step="worker"
          place={places.worker}
          done={t("guide.workerThere", { n: workers.length, names: workers.slice(0, 3).join(", ") })}
        >
          <WorkerStep kind={kind} />
        </Part>
        <Part step="task" place={places.task} done={task !== undefined && <TaskLink task={task} />}>
          <TaskStep kind={kind} isPresent={places.task === "present"} />
        </Part>
        <Part step="run" place={places.run} done={run && <RunLink run={run.run} />}>
          <RunStep task={task} />
        </Part>
        <Part step="see" place={places.see}>
          <SeeStep run={run} />
        </Part>
      </ol>
    </Card>
  );
}

function Part({ step, place, done, children }: { step: Step; place: Place; done?: ReactNode; children: ReactNode }) {
  const { t } = useWords();
  return (
    <li className={css.step} data-place={place} aria-current={place === "present" ? "step" : undefined}>
      <span className={css.mark}>
        {place === "done" && <IconCheck size={16} role="img" aria-label={t("guide.done")} />}
      </span>
      <div className={css.part}>
        <h3>{t(`guide.step.${step}`)}</h3>
        {place === "done" ? <p className="soft">{done}</p> : children}
      </div>
    </li>
  );
}

function WorkerStep({ kind }: { kind: Kind }) {
  const { t } = useWords();
  return (
    <>
      <p className="soft">{t(`guide.worker.${kind}`)}</p>
      {kind === "code" && <Copyable label={t("guide.file")} text={exampleFile} />}
      <Copyable label={t("guide.command")} text={workerCommands[kind]} />
      {kind === "code" && (
        <>
          <p className="soft">
            {t("guide.remote")}{" "}
            <Link to="/access" search={{ part: "keys" }}>
              {t("guide.keys")}
            </Link>
          </p>
          <Copyable label={t("guide.remoteCommand")} text={remoteWorker(serverUrl)} />
        </>
      )}
    </>
  );
}

function TaskStep({ kind, isPresent }: { kind: Kind; isPresent: boolean }) {
  const { t } = useWords();
  const may = useMay("editor");
  const [creates, setCreates] = useState(false);
  return (
    <>
      <p className="soft">{t(`guide.task.${kind}`)}</p>
      {may ? (
        <Button variant={isPresent ? "filled" : "default"} size="compact-md" onClick={() => setCreates(true)}>
          {t("create.open")}
        </Button>
      ) : (
        <p className="soft">{t("guide.needs", { role: t("role.editor") })}</p>
      )}
      {creates && (
        <Suspense fallback={<Waiting rows={1} />}>
          <Create kind={kind} onClose={() => setCreates(false)} />
        </Suspense>
      )}
    </>
  );
}

function RunStep({ task }: { task: string | undefined }) {
  const { t } = useWords();
  const reach = useReach("operator");
  const [runs, setRuns] = useState(false);
  if (task === undefined) return <p className="soft">{t("guide.runLater")}</p>;
  return (
    <>
      <p className="soft">{t("guide.runNow")}</p>
      <Copyable label={t("guide.command")} text={runCommand(task)} />
      {reach.on(task) && (
        <Button size="compact-md" onClick={() => setRuns(true)}>
          {t("guide.runTask", { task })}
        </Button>
      )}
      {runs && (
        <Suspense fallback={<Waiting rows={1} />}>
          <RunNamed task={task} onClose={() => setRuns(false)} />
        </Suspense>
      )}
    </>
  );
}

function SeeStep({ run }: { run: ListedRun | undefined }) {
  const { t } = useWords();
  if (!run) return <p className="soft">{t("guide.seeLater")}</p>;
  return (
    <p className={css.run}>
      <RunMark run={run} />
      <Link to="/runs/$run" params={{ run: String(run.run) }}>
        {t("guide.seeRun", { run: String(run.run) })}
      </Link>
    </p>
  );
}
