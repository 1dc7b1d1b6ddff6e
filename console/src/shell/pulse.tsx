/** The state of the connection to the server, and the cluster's time. */
import { useEffect } from "react";
import { answers } from "../api/answers.ts";
import { call } from "../api/call.ts";
import { useLine } from "../live/live.ts";
import { useWords } from "../messages/words.ts";
import { learnTime, useNow } from "../now.ts";
import css from "./shell.module.css";

export function Pulse() {
  const { t, clock, zone } = useWords();
  const now = useNow();
  const { state } = useLine();
  useEffect(() => {
    if (state !== "live") return;
    const askedMs = Date.now();
    call("getCluster", {}).then(
      (cluster) => {
        learnTime(Date.parse(cluster.now), askedMs);
        answers.setQueryData(["getCluster", {}], cluster);
      },
      // The banner reports an unreachable server; until the server answers, the browser's clock is used.
      () => undefined,
    );
  }, [state]);
  return (
    <div className={css.pulse} data-state={state} title={`${t(`line.${state}`)} · ${zone}`}>
      <span className={css.dot} aria-hidden />
      <span className="unseen" role="status">
        {t(`line.${state}`)}
      </span>
      <span className={`${css.clock} figures`}>{clock(now)}</span>
    </div>
  );
}
