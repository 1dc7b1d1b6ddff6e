/** Shows which tasks run after which others, as a graph and as a list: all of them, or those that are connected with one task. */
import { useState } from "react";
import { useAnswer } from "../api/answers.ts";
import type { Answer } from "../api/call.ts";
import { useWords, type Words } from "../messages/words.ts";
import { Graph, type GraphLine, type GraphNode } from "../parts/graph/graph.tsx";
import { GraphCard } from "../parts/graph/graph-card.tsx";
import { StateMark, Tag, toneOf } from "../parts/state/mark.tsx";
import { Nothing, Shown } from "../parts/state/notice.tsx";
import { Table } from "../parts/table/table.tsx";
import { TaskLink } from "../parts/value/links.tsx";
import { Acts } from "../tasks/acts.tsx";
import css from "./flow.module.css";
import { type Doing, useDoing } from "./states.ts";

type Flow = Answer<"listFlow">;
type TaskOfFlow = Flow["tasks"][number];

const everyMs = 10_000;

/** @param task the task whose connected tasks are shown; undefined for all tasks that run after others */
export function TaskFlow({ task }: { task?: string }) {
  const { t } = useWords();
  const flow = useAnswer("listFlow", task === undefined ? {} : { task }, { everyMs });
  return (
    <Shown of={flow} rows={6}>
      {(data) =>
        data.tasks.length > 1 ? (
          <Connected flow={data} own={task} />
        ) : (
          <Nothing title={t(task === undefined ? "flow.none" : "flow.alone")}>
            {t("flow.noneTold")} <code>after: "load"</code>
          </Nothing>
        )
      }
    </Shown>
  );
}

function Connected({ flow: { tasks, more }, own }: { flow: Flow; own: string | undefined }) {
  const words = useWords();
  const { t } = words;
  const [chosen, setChosen] = useState(own ?? tasks[0]?.task ?? "");
  const doing = useDoing(tasks.map(({ task }) => task));
  const its = tasks.find(({ task }) => task === chosen) ?? tasks[0];
  const nodes = tasks.map(
    (one): GraphNode => ({
      id: one.task,
      tone: toneOf[doing(one.task).state ?? "ready"],
      opens: { to: "/tasks/$task", params: { task: one.task } },
      isOwn: one.task === own,
      isPaused: one.paused,
      name: one.task,
      title: one.task,
      state: (
        <>
          <Standing doing={doing(one.task)} />
          {one.paused && <Tag tone="late">{t("task.paused")}</Tag>}
        </>
      ),
      unseen: one.after.length > 0 ? afterText(one, words) : "",
    }),
  );
  return (
    <GraphCard
      title={t("flow.title")}
      told={more ? t("flow.more", { n: tasks.length }) : t("flow.lead")}
      graph={
        <Graph
          label={t("flow.label", { n: tasks.length })}
          nodes={nodes}
          lines={linesOf(tasks, words)}
          chosen={chosen}
          onChoose={setChosen}
        />
      }
      list={<Rows tasks={tasks} doing={doing} />}
      chosen={its && <Chosen key={its.task} task={its} doing={doing(its.task)} />}
    />
  );
}

const linesOf = (tasks: TaskOfFlow[], { t }: Words): GraphLine[] =>
  tasks.flatMap(({ task, after, on }) =>
    after.map((from) => ({
      from,
      to: task,
      ...(on === "failure" || on === "any" ? { kind: on, word: t(`flow.on.${on}`) } : {}),
    })),
  );

const afterText = ({ after, on }: TaskOfFlow, { t }: Words): string =>
  `${t("flow.after")} ${after.join(", ")} ${t(`flow.on.${on ?? "success"}`)}`;

function Standing({ doing: { state, running } }: { doing: Doing }) {
  const { t, count } = useWords();
  if (state === undefined) return <span className="soft">{t("strip.none")}</span>;
  return (
    <>
      <StateMark state={state} />
      {running > 1 && <span className="figures">× {count(running)}</span>}
    </>
  );
}

/** The task that is selected in the graph, with its actions. */
function Chosen({ task, doing }: { task: TaskOfFlow; doing: Doing }) {
  const words = useWords();
  const whole = useAnswer("getTask", { task: task.task });
  return (
    <>
      <div className={css.told}>
        <TaskLink task={task.task} />
        <Standing doing={doing} />
        {task.after.length > 0 && <span className="soft">{afterText(task, words)}</span>}
      </div>
      <div className={css.acts}>{whole.data && <Acts task={whole.data} />}</div>
    </>
  );
}

function Rows({ tasks, doing }: { tasks: TaskOfFlow[]; doing: (task: string) => Doing }) {
  const words = useWords();
  const { t } = words;
  return (
    <Table
      label={t("flow.title")}
      className={css.rows}
      heads={[t("noun.task"), t("runs.state"), t("flow.after"), t("flow.then")]}
    >
      {tasks.map((one) => (
        <tr key={one.task}>
          <td>
            <TaskLink task={one.task} />
          </td>
          <td>
            <Standing doing={doing(one.task)} />
          </td>
          <td>
            {one.after.length === 0 ? (
              "–"
            ) : (
              <>
                {one.after.map((before) => (
                  <div key={before}>
                    <TaskLink task={before} />
                  </div>
                ))}
                <span className="soft">{t(`flow.on.${one.on ?? "success"}`)}</span>
              </>
            )}
          </td>
          <td>
            {tasks
              .filter(({ after }) => after.includes(one.task))
              .map(({ task }) => (
                <div key={task}>
                  <TaskLink task={task} />
                </div>
              ))}
          </td>
        </tr>
      ))}
    </Table>
  );
}
