/** The family of a run: the runs that it comes from and the runs that it made, directly or indirectly, as a graph and as a list. */
import { Button } from "@mantine/core";
import { useState } from "react";
import { useAnswer } from "../../api/answers.ts";
import { useWords } from "../../messages/words.ts";
import { useNow } from "../../now.ts";
import { Graph, type GraphNode } from "../../parts/graph/graph.tsx";
import { GraphCard } from "../../parts/graph/graph-card.tsx";
import { shownState, toneOf } from "../../parts/state/mark.tsx";
import { Shown } from "../../parts/state/notice.tsx";
import { Table } from "../../parts/table/table.tsx";
import { RunLink, TaskLink } from "../../parts/value/links.tsx";
import { RunActs } from "../acts.tsx";
import { RunMark } from "../marks.tsx";
import { isOver } from "../states.ts";
import css from "./family.module.css";
import { causesOf, type FamilyNode, type FamilyRun, familyGraph } from "./family-nodes.ts";

/** The refetch interval while a run of the family is not over: events report only ends. */
const everyMs = 2_000;

export function Family({ run }: { run: number }) {
  const first = useAnswer("getRunFamily", { run });
  const isLive = first.data?.runs.some((one) => !isOver(one)) ?? false;
  const family = useAnswer("getRunFamily", { run }, isLive ? { everyMs } : {});
  return (
    <Shown of={family} rows={3}>
      {({ runs, more }) => (runs.length > 1 ? <Whole run={run} runs={runs} more={more} /> : null)}
    </Shown>
  );
}

function Whole({ run, runs, more }: { run: number; runs: FamilyRun[]; more: boolean }) {
  const { t, count } = useWords();
  const now = useNow();
  const [chosen, setChosen] = useState(String(run));
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const { nodes, lines, canFold } = familyGraph(runs, run, opened);
  const its = nodes.find(({ id }) => id === chosen) ?? nodes[0];
  const drawn = nodes.map((node): GraphNode => {
    const [one] = node.runs;
    const isSingle = node.runs.length === 1;
    return {
      id: node.id,
      tone: toneOf[shownState(one, now)],
      isOwn: one.run === run,
      name: isSingle ? (
        one.task
      ) : (
        <>
          <b className="figures">{count(node.runs.length)} × </b>
          {one.task}
        </>
      ),
      title: one.task,
      state: <State node={node} />,
      unseen: t(`source.${one.source}`),
      ...(isSingle
        ? { opens: { to: "/runs/$run" as const, params: { run: String(one.run) } } }
        : {
            onPress: () => {
              setOpened((before) => new Set([...before, node.id]));
              setChosen(String(one.run));
            },
          }),
    };
  });
  return (
    <GraphCard
      title={t("family.title")}
      told={
        <>
          {t(more ? "family.more" : "family.lead", { n: runs.length })}{" "}
          {canFold && (
            <Button
              size="compact-xs"
              variant="default"
              onClick={() => {
                setOpened(new Set());
                setChosen(String(run));
              }}
            >
              {t("family.fold")}
            </Button>
          )}
        </>
      }
      graph={
        <Graph
          label={t("family.label", { n: runs.length })}
          nodes={drawn}
          lines={lines}
          chosen={chosen}
          onChoose={setChosen}
        />
      }
      list={<Rows runs={runs} />}
      chosen={its && <Chosen key={its.id} node={its} />}
    />
  );
}

function State({ node: { runs } }: { node: FamilyNode }) {
  const { t, span } = useWords();
  const [one] = runs;
  return (
    <>
      <RunMark run={one} />
      <span className="soft figures">
        {runs.length > 1 ? t("family.open") : one.run}
        {runs.length === 1 && one.tookMs !== null && ` · ${span(one.tookMs)}`}
      </span>
    </>
  );
}

/** The run that is selected in the graph, with its actions; for several runs, what they have in common. */
function Chosen({ node: { runs } }: { node: FamilyNode }) {
  const { t, count } = useWords();
  const [one] = runs;
  const isSingle = runs.length === 1;
  const whole = useAnswer("getRun", { run: one.run }, { enabled: isSingle });
  return (
    <>
      <div className={css.told}>
        {isSingle ? <RunLink run={one.run} /> : <b className="figures">{count(runs.length)} ×</b>}
        <TaskLink task={one.task} />
        <RunMark run={one} />
        <span className="soft">
          {t("run.source")} {t(`source.${one.source}`)}
        </span>
      </div>
      <div className={css.acts}>{isSingle && whole.data && <RunActs run={whole.data} />}</div>
    </>
  );
}

function Rows({ runs }: { runs: FamilyRun[] }) {
  const { t, span } = useWords();
  const causes = causesOf(runs);
  return (
    <Table
      label={t("family.title")}
      className={css.rows}
      heads={[t("noun.run"), t("noun.task"), t("runs.state"), t("run.took"), t("run.source"), t("flow.after")]}
    >
      {runs.map((one) => (
        <tr key={one.run}>
          <td>
            <RunLink run={one.run} />
          </td>
          <td>
            <TaskLink task={one.task} />
          </td>
          <td>
            <RunMark run={one} />
          </td>
          <td className="figures">{one.tookMs === null ? "–" : span(one.tookMs)}</td>
          <td>{t(`source.${one.source}`)}</td>
          <td className={css.causes}>
            {(causes.get(one.run) ?? []).slice(0, causesShown).map((cause) => (
              <RunLink key={cause} run={cause} />
            ))}
            {(causes.get(one.run)?.length ?? 0) > causesShown && <span className="soft">…</span>}
          </td>
        </tr>
      ))}
    </Table>
  );
}

const causesShown = 8;
