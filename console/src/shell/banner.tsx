import { Button } from "@mantine/core";
import { IconPlugConnectedX } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { useLine } from "../live/live.ts";
import { tryNow } from "../live/standing.ts";
import { useWords } from "../messages/words.ts";
import css from "./shell.module.css";

/** Interruptions shorter than this are not reported. */
const patienceMs = 1_500;

/** Reports that the page may be out of date, since when, and the next attempt to connect. */
export function Banner() {
  const { t, clock } = useWords();
  const { state, heardMs } = useLine();
  const isDown = state === "broken";
  const [told, setTold] = useState(false);
  useEffect(() => {
    if (state === "live" || state === "paused") return setTold(false);
    if (!isDown) return;
    const timer = setTimeout(() => setTold(true), patienceMs);
    return () => clearTimeout(timer);
  }, [isDown, state]);
  if (!told) return null;
  return (
    <div className={css.banner} role="alert">
      <IconPlugConnectedX size={18} aria-hidden />
      <span>{heardMs === null ? t("banner.never") : t("banner.since", { time: clock(heardMs) })}</span>
      <Button size="compact-sm" variant="default" onClick={tryNow}>
        {t("act.tryNow")}
      </Button>
    </div>
  );
}
