import { Button, SegmentedControl } from "@mantine/core";
import { IconArrowRight } from "@tabler/icons-react";
import { useRef, useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { type Answer, call, type Given } from "../api/call.ts";
import { useReach } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { useEach } from "../parts/form/each.ts";
import { Card } from "../parts/layout/page.tsx";
import { Gauge } from "../parts/state/gauge.tsx";
import { Shown } from "../parts/state/notice.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { TaskLink } from "../parts/value/links.tsx";
import css from "./timeline.module.css";

type Suggested = Answer<"suggestSpread">;
type Move = Suggested["moves"][number];

const withins = ["5", "10", "20", "45"];
const shownAtFirst = 8;

/** Suggests tasks to move to later times, with the effect; an editor applies the moves from here. */
export function Spread({ given }: { given: Given<"getTimeline"> }) {
  const { t } = useWords();
  const { on } = useReach("editor");
  const [within, setWithin] = useState("10");
  const [moving, setMoving] = useState<Move[]>();
  const asked = useAnswer("suggestSpread", { ...given, within: Number(within) }, { keep: true });
  return (
    <Card
      title={t("timeline.spread")}
      more={
        <span className={css.within}>
          <span className="soft">{t("timeline.within")}</span>
          <SegmentedControl
            size="xs"
            aria-label={t("timeline.within")}
            value={within}
            onChange={setWithin}
            data={withins.map((value) => ({ value, label: t("timeline.minutes", { n: Number(value) }) }))}
          />
        </span>
      }
    >
      <Shown of={asked} rows={5}>
        {(spread) => <Suggestion spread={spread} mayEdit={on} onMove={setMoving} />}
      </Shown>
      {moving && <SetLater moves={moving} onClose={() => setMoving(undefined)} />}
    </Card>
  );
}

function Suggestion({
  spread: { peak, fuller, moves, jitter },
  mayEdit,
  onMove,
}: {
  spread: Suggested;
  mayEdit: (task: string) => boolean;
  onMove: (moves: Move[]) => void;
}) {
  const { t, count } = useWords();
  const [all, setAll] = useState(false);
  if (moves.length === 0) return <p className="soft">{t("timeline.good")}</p>;
  const shown = all ? moves : moves.slice(0, shownAtFirst);
  const own = moves.filter(({ task }) => mayEdit(task));
  return (
    <>
      <dl className={css.gains}>
        <Gain name={t("timeline.peak")} before={peak.before} after={peak.after} />
        <Gain name={t("timeline.fuller", { n: peak.after })} before={fuller} after={0} />
      </dl>
      <p className="soft">{t("timeline.movesTold")}</p>
      <ul className={css.moves}>
        {shown.map((move) => (
          <li key={move.task}>
            <span className={css.moved}>
              <TaskLink task={move.task} />
              <span className="mono soft">
                {move.expression} → {move.becomes}
              </span>
            </span>
            <span className={`${css.later} figures`}>{t("timeline.later", { n: move.minutes })}</span>
            {mayEdit(move.task) && (
              <Button size="compact-sm" variant="default" onClick={() => onMove([move])}>
                {t("timeline.move")}
              </Button>
            )}
          </li>
        ))}
      </ul>
      <div className={css.moveAll}>
        {moves.length > shown.length && (
          <Button size="compact-sm" variant="subtle" c="var(--c-text)" onClick={() => setAll(true)}>
            {t("bulk.andMore", { n: moves.length - shown.length })}
          </Button>
        )}
        {own.length > 1 && (
          <Button size="compact-sm" variant="default" onClick={() => onMove(own)}>
            {t("timeline.moveAll", { n: own.length })}
          </Button>
        )}
      </div>
      <h3 className={css.subtitle}>{t("timeline.jitter")}</h3>
      <p className="soft">{t("timeline.jitterTold")}</p>
      <p className={css.jitter}>
        {jitter.map(({ minutes, peak: reached }) => (
          <span key={minutes} className="figures">
            {t("timeline.jitterEach", { minutes, peak: count(reached) })}
          </span>
        ))}
      </p>
    </>
  );
}

function Gain({ name, before, after }: { name: string; before: number; after: number }) {
  const { t, count } = useWords();
  return (
    <div>
      <dt>{name}</dt>
      <dd className="figures">
        <span className="unseen">{t("timeline.fromTo", { before: count(before), after: count(after) })}</span>
        <span aria-hidden>
          <span className="soft">{count(before)}</span> <IconArrowRight size={16} /> <b>{count(after)}</b>
        </span>
      </dd>
    </div>
  );
}

/** Applies the suggested moves. Each edit is conditional on the task's version in the suggestion, so it overwrites no later edit. */
function SetLater({ moves, onClose }: { moves: Move[]; onClose: () => void }) {
  const { t } = useWords();
  const { done: at, each } = useEach(moves);
  const edits = useRef<{ task: string; was: number; is: number }[]>([]);
  const after = () =>
    outdate("getTimeline", "suggestSpread", "listFiring", "listTasks", "getTask", "listTaskVersions", "listComing");
  return (
    <Confirm
      title={t("timeline.moveTitle", { n: moves.length })}
      consequence={t("timeline.moveTold")}
      act={t("timeline.move")}
      onDo={async (doing) => {
        const { reason } = doing;
        const act = async ({ task, version, becomes }: Move, key: string) => {
          const { schedule } = await call("getTask", { task });
          const later = { ...(schedule as { type: "cron" }), expression: becomes };
          const edited = await call(
            "editTask",
            { task, options: { schedule: later }, reason },
            { key, ifVersion: version },
          );
          edits.current.push({ task, was: version, is: edited.version });
        };
        try {
          await each(doing, act);
        } finally {
          after();
        }
        const done = edits.current;
        if (done.length === 0) return;
        toast({
          text: t("timeline.moved", { n: done.length }),
          undo: async () => {
            const tries = await Promise.allSettled(
              done.map(({ task, was, is }) => call("revertTask", { task, version: was }, { ifVersion: is })),
            );
            after();
            const failed = tries.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
            if (failed.length > 0)
              throw new Error(t("timeline.stay", { n: failed.length, why: (failed[0] as Error).message }));
          },
        });
      }}
      onClose={onClose}
    >
      <ul className={css.moves} data-asked>
        {moves.slice(0, shownAtFirst).map(({ task, expression, becomes }) => (
          <li key={task}>
            <span className={css.moved}>
              <b>{task}</b>
              <span className="mono soft">
                {expression} → {becomes}
              </span>
            </span>
          </li>
        ))}
        {moves.length > shownAtFirst && (
          <li className="soft">{t("bulk.andMore", { n: moves.length - shownAtFirst })}</li>
        )}
      </ul>
      {at > 0 && <Gauge done={at} total={moves.length} label={t("bulk.progress")} />}
    </Confirm>
  );
}
