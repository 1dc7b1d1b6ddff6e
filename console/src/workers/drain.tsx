import { Button } from "@mantine/core";
import { useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { call } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { Away } from "../parts/value/moment.tsx";
import type { Drained } from "./answers.ts";
import css from "./workers.module.css";

export function By({ drained: { by, since, why } }: { drained: Drained }) {
  return (
    <>
      {by}, <Away at={since} past />
      {why === "" ? "" : `: ${why}`}
    </>
  );
}

interface Drain {
  node: string;
  drained: boolean;
  /** The number of runs that the worker has. */
  held: number;
}

export function DrainOrResume(of: Drain) {
  const { t } = useWords();
  const [asks, setAsks] = useState(false);
  const { node, drained } = of;
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
      {asks && <DrainDialog {...of} onClose={() => setAsks(false)} />}
    </div>
  );
}

/** Asks for confirmation, then drains a worker, or gives a drained one runs again. */
function DrainDialog({ node, drained, held, onClose }: Drain & { onClose: () => void }) {
  const { t, count } = useWords();
  const act = async (id: "drainNode" | "resumeNode", reason: string | undefined, key?: string) => {
    await call(id, { node, reason }, key === undefined ? {} : { key });
    for (const list of ["listDrained", "listWorkers", "listNodes"] as const) outdate(list);
  };
  const [wanted, back] = drained ? (["resumeNode", "drainNode"] as const) : (["drainNode", "resumeNode"] as const);
  return (
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
      onClose={onClose}
    />
  );
}

/** The dialog for places that know only the worker's name. */
export function DrainNamed({ node, drained, onClose }: Omit<Drain, "held"> & { onClose: () => void }) {
  const workers = useAnswer("listWorkers", { limit: 200 });
  if (!workers.data) return null;
  const held = workers.data.items.find((worker) => worker.node === node)?.held ?? 0;
  return <DrainDialog node={node} drained={drained} held={held} onClose={onClose} />;
}
