import { SegmentedControl } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { useWords } from "../../messages/words.ts";
import { Card } from "../layout/page.tsx";
import css from "./graph-card.module.css";

/** A graph and the same content as a list, of which one is shown, and below the graph its chosen node with the actions on it. */
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
