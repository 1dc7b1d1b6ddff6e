import { Link } from "@tanstack/react-router";
import { useAnswer } from "../../api/answers.ts";
import { useWords } from "../../messages/words.ts";
import { useNow } from "../../now.ts";
import { RunLink } from "../../parts/value/links.tsx";
import type { ListedRun, Run } from "../answers.ts";
import { isOver } from "../states.ts";
import css from "./why.module.css";
import { figuresOf, type Reason, whyText } from "./why-text.ts";

const everyMs = 3_000;

/** True if no attempt of the run is under way: the run waits for something, or its worker has not reported the start. */
export const isWaiting = (run: Pick<ListedRun, "state" | "started">): boolean =>
  !isOver(run) && (run.state !== "claimed" || run.started === null);

/** Says on the run's own page why it has not started yet, as the server explains it. */
export function Why({ run }: { run: Run }) {
  const { t } = useWords();
  const waits = isWaiting(run);
  const { data } = useAnswer("explainRun", { run: run.run }, { enabled: waits, everyMs });
  if (!waits || !data || data.reasons.length === 0) return null;
  return (
    <section className={css.why} aria-label={t("why.title")}>
      <strong>{t("why.title")}</strong>
      <Reasons task={run.task} reasons={data.reasons} />
    </section>
  );
}

export function Reasons({ task, reasons }: { task: string; reasons: readonly Reason[] }) {
  const words = useWords();
  const now = useNow();
  const { t } = words;
  return (
    <ul className={css.reasons}>
      {reasons.map((reason) => {
        const { by = [], group } = figuresOf(reason);
        return (
          <li key={reason.code} data-code={reason.code}>
            {whyText(reason, words, now)}
            {by.length > 0 && (
              <>
                {" "}
                {t("why.by")}{" "}
                {by.map((one) => (
                  <span key={one.run} className={css.holder}>
                    <RunLink run={one.run} />
                  </span>
                ))}
              </>
            )}{" "}
            <Help code={reason.code} task={task} group={group ?? undefined} />
          </li>
        );
      })}
    </ul>
  );
}

const atTask = ["task-paused", "held", "overlap", "limit-key", "limit-worker", "rate", "no-labels", "no-handler"];
const atWorkers = [
  "group-limit",
  "no-worker",
  "workers-silent",
  "workers-draining",
  "workers-busy",
  "addressee-away",
  "worker-silent",
  "worker-stands-still",
  "worker-gone",
  "not-started",
];

/** The link to the screen on which the cause can be seen and, with the rights for it, removed. */
function Help({ code, task, group }: { code: string; task: string; group: string | undefined }) {
  const { t } = useWords();
  if (atTask.includes(code))
    return (
      <Link to="/tasks/$task" params={{ task }}>
        {t("why.toTask")}
      </Link>
    );
  if (atWorkers.includes(code))
    return (
      <Link to="/workers" search={group === undefined ? {} : { group }}>
        {t("why.toWorkers")}
      </Link>
    );
  return code === "leaderless" ? <Link to="/nodes">{t("screen.nodes")}</Link> : null;
}
