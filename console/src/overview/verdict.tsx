/**
 * The verdict at the top of the overview: all is well, a list of problems with links, or "unknown". It is unknown while the server
 * or its store is unavailable, because the cached data may be out of date.
 */
import {
  IconAlertTriangleFilled,
  IconCircleCheckFilled,
  IconCircleXFilled,
  IconHelpCircleFilled,
} from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useWords } from "../messages/words.ts";
import { useKnown } from "../parts/state/known.ts";
import type { Tone } from "../parts/state/mark.tsx";
import { useCounts } from "./counts.ts";
import type { Figures } from "./figures.ts";
import css from "./overview.module.css";

interface Trouble {
  tone: Tone;
  text: string;
  link: ReactNode;
}

/** The present problems, each with a link to the screen that shows it. */
export function useTroubles({ cluster, overdue, undecided, failures, alarming, isAlone }: Figures): Trouble[] {
  const { t } = useWords();
  const { leastOf } = useCounts();
  const runs = (state: string) => (
    <Link to="/runs" search={{ state }}>
      {t("overview.see")}
    </Link>
  );
  const troubles: Trouble[] = [];
  if (cluster.data && !cluster.data.leader)
    troubles.push({ tone: "bad", text: t("overview.noLeader"), link: <Link to="/nodes">{t("screen.nodes")}</Link> });
  if (isAlone)
    troubles.push({
      tone: "bad",
      text: t("overview.noWorkers"),
      link: <Link to="/workers">{t("screen.workers")}</Link>,
    });
  if (alarming.n > 0)
    troubles.push({
      tone: "late",
      text: t("overview.alarmsTold", { n: leastOf(alarming) }),
      link: <Link to="/alarms">{t("screen.alarms")}</Link>,
    });
  if (overdue.n > 0)
    troubles.push({ tone: "bad", text: t("overview.overdueTold", { n: leastOf(overdue) }), link: runs("ready") });
  if (undecided.n > 0)
    troubles.push({
      tone: "late",
      text: t("overview.undecidedTold", { n: leastOf(undecided) }),
      link: runs("undecided"),
    });
  if (failures.n > 0)
    troubles.push({ tone: "late", text: t("overview.failedTold", { n: leastOf(failures) }), link: runs("failed") });
  return troubles;
}

export function Verdict({ figures }: { figures: Figures }) {
  const { t } = useWords();
  const { ready, live, failed, alarms, workers, cluster } = figures;
  const { isKnown, isLost, told } = useKnown([ready, live, failed, alarms, workers, cluster]);
  if (isKnown) return <Known figures={figures} />;
  return (
    // While the data is loading, a placeholder as high as the later content is shown, so that nothing moves when the content arrives.
    <section className={css.verdict} data-tone="wait" aria-label={t("overview.verdict")} aria-busy={!isLost}>
      {isLost && (
        <>
          <IconHelpCircleFilled size={30} aria-hidden />
          <div>
            <p className={css.said}>{t("known.title")}</p>
            <p className="soft">{told}</p>
          </div>
        </>
      )}
    </section>
  );
}

export const worstOf = (troubles: readonly { tone: Tone }[]): "bad" | "late" | "ok" =>
  troubles.some(({ tone }) => tone === "bad") ? "bad" : troubles.length > 0 ? "late" : "ok";

function Known({ figures }: { figures: Figures }) {
  const { t, span } = useWords();
  const troubles = useTroubles(figures);
  const late = figures.lateMost;
  const worst = worstOf(troubles);
  const Icon = worst === "bad" ? IconCircleXFilled : worst === "late" ? IconAlertTriangleFilled : IconCircleCheckFilled;
  return (
    <section className={css.verdict} data-tone={worst} aria-label={t("overview.verdict")}>
      <Icon size={30} aria-hidden />
      <div>
        <p className={css.said}>{t(`overview.is.${worst}`)}</p>
        {troubles.length === 0 ? (
          <p className="soft">{late === null ? t("overview.quiet") : t("overview.lateTold", { span: span(late) })}</p>
        ) : (
          <ul>
            {troubles.map(({ tone, text, link }) => (
              <li key={text} data-tone={tone}>
                {text} {link}
              </li>
            ))}
          </ul>
        )}
      </div>
    </section>
  );
}
