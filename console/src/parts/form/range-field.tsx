import { Select } from "@mantine/core";
import { useMemo, useRef, useState } from "react";
import type { Filter } from "../../filter.ts";
import { useWords } from "../../messages/words.ts";
import { useNow } from "../../now.ts";
import { type Bounds, boundsOf, isRange, ranges } from "./range.ts";
import { TimeField } from "./time-field.tsx";

/** The time range of a screen's filter. A range such as the last hour is computed again every minute. */
export function useBounds(search: Filter): Bounds {
  const { zone } = useWords();
  const { within, since, until } = search;
  const minuteMs = Math.floor(useNow() / 60_000) * 60_000;
  const bounds = useMemo(
    () => boundsOf({ within, since, until }, minuteMs, zone),
    [within, since, until, minuteMs, zone],
  );
  // An unchanged range is returned as the same object, because a new object would start a new request.
  const kept = useRef(bounds);
  if (kept.current.since !== bounds.since || kept.current.until !== bounds.until) kept.current = bounds;
  return kept.current;
}

/** Chooses a range of time by name, or by two times. */
export function RangeField({ search, onChange }: { search: Filter; onChange: (change: Filter) => void }) {
  const { t } = useWords();
  const [isOwn, setOwn] = useState(false);
  const { within, since, until } = search;
  const own = isOwn || since !== undefined || until !== undefined;
  const chosen = isRange(within) ? within : own ? "own" : null;
  return (
    <>
      <Select
        w={168}
        aria-label={t("range.label")}
        placeholder={t("range.any")}
        data={[...ranges, "own" as const].map((value) => ({ value, label: t(`range.${value}`) }))}
        value={chosen}
        onChange={(value) => {
          setOwn(value === "own");
          onChange({ within: value === "own" ? undefined : (value ?? undefined), since: undefined, until: undefined });
        }}
        clearable
        clearButtonProps={{ "aria-label": t("filter.clear") }}
      />
      {chosen === "own" && (
        <>
          <TimeField label={t("runs.since")} value={since} onChange={(at) => onChange({ since: at })} />
          <TimeField label={t("runs.until")} value={until} onChange={(at) => onChange({ until: at })} />
        </>
      )}
    </>
  );
}
