import { Button } from "@mantine/core";
import { IconPlugConnectedX } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { answers } from "../api/answers.ts";
import { isConfirmed, useStanding } from "../live/live.ts";
import { tryNow } from "../live/standing.ts";
import { useWords } from "../messages/words.ts";
import css from "./shell.module.css";

/** Interruptions shorter than this are not reported. */
const patienceMs = 1_500;

/**
 * Reports that the page may be out of date, and since when. While the banner is shown, the screen is rendered without colours, because
 * a green state might no longer be true.
 */
export function Banner() {
  const { t, when } = useWords();
  const { state, sinceMs } = useStanding();
  const isDown = !isConfirmed(state);
  const [told, setTold] = useState(false);
  useEffect(() => {
    if (state === "live" || state === "paused") return setTold(false);
    if (!isDown) return;
    const timer = setTimeout(() => setTold(true), patienceMs);
    return () => clearTimeout(timer);
  }, [isDown, state]);
  if (!told) return null;
  const key = state === "slow" || state === "failed" ? state : "line";
  const text = sinceMs === null ? t(`banner.${key}.never`) : t(`banner.${key}`, { time: when(sinceMs) });
  return (
    <div className={css.banner} role="alert">
      <IconPlugConnectedX size={18} aria-hidden />
      <span>{text}</span>
      <Button size="compact-sm" variant="default" onClick={again}>
        {t("act.tryNow")}
      </Button>
    </div>
  );
}

/** Reopens the event streams and fetches all answers again at once, without waiting for the next attempt. */
function again(): void {
  tryNow();
  void answers.invalidateQueries();
}
