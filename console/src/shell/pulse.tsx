/** The state of the connection to the server, and the cluster's time. */
import { useEffect } from "react";
import { answers, useAnswer } from "../api/answers.ts";
import { call } from "../api/call.ts";
import { useLine, useStanding } from "../live/live.ts";
import { useWords } from "../messages/words.ts";
import { learnTime, useNow } from "../now.ts";
import css from "./shell.module.css";

/** Every screen repeats this read at this interval (ms), to detect that the server cannot read its store. */
const readEveryMs = 4_000;

export function Pulse() {
  const { t, clock, zone } = useWords();
  const now = useNow();
  const { state } = useLine();
  const standing = useStanding().state;
  useAnswer("getCluster", {}, { everyMs: readEveryMs });
  useEffect(() => {
    if (state !== "live") return;
    const askedMs = Date.now();
    call("getCluster", {}).then(
      (cluster) => {
        learnTime(Date.parse(cluster.now), askedMs);
        answers.setQueryData(["getCluster", {}], cluster);
      },
      // The banner reports the unreachable server. The clock offset stays as it is until the server answers.
      () => undefined,
    );
  }, [state]);
  return (
    <div className={css.pulse} data-state={standing} title={`${t(`line.${standing}`)} · ${zone}`}>
      <span className={css.dot} aria-hidden />
      <span className="unseen" role="status">
        {t(`line.${standing}`)}
      </span>
      <span className={`${css.clock} figures`}>{clock(now)}</span>
      {/* All times of the page are in this zone. */}
      <span className={css.zone}>{zone.slice(zone.lastIndexOf("/") + 1).replaceAll("_", " ")}</span>
    </div>
  );
}
