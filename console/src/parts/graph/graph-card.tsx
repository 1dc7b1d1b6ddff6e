import { SegmentedControl } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { useWords } from "../../messages/words.ts";
import { Card } from "../layout/page.tsx";
import css from "./graph-card.module.css";

/** A graph, or the same content as a list. Below the graph: the selected node with its actions. */
export function GraphCard({
  title,
  told,
  graph,
  list,
  chosen,
}: {
  title: string;
  told: ReactNode;
  graph: ReactNode;
  list: ReactNode;
  chosen: ReactNode;
}) {
  const { t } = useWords();
  const [view, setView] = useState("graph");
  return (
    <Card
      title={title}
      more={
        <SegmentedControl
          size="xs"
          aria-label={t("graph.view")}
          value={view}
          onChange={setView}
          data={[
            { value: "graph", label: t("graph.graph") },
            { value: "list", label: t("graph.list") },
          ]}
        />
      }
    >
      <p className={`${css.told} soft`}>{told}</p>
      {view === "list" ? (
        list
      ) : (
        <>
          {graph}
          <section className={css.chosen} aria-label={t("graph.chosen")}>
            {chosen}
          </section>
        </>
      )}
    </Card>
  );
}
