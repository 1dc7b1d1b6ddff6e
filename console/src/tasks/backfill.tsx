/** Creates runs for past slots that have no run, as an operation; the dialog first shows their number. */
import { NumberInput, Switch } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { useAnswer } from "../api/answers.ts";
import { useWords } from "../messages/words.ts";
import { nowMs } from "../now.ts";
import { Begin, Names } from "../operations/begin.tsx";
import { TimeField } from "../parts/form/time-field.tsx";
import { Shown } from "../parts/state/notice.tsx";
import css from "./task.module.css";

const dayMs = 86_400_000;
const namesShown = 5;

export function Backfill({ task, onClose }: { task: string; onClose: () => void }) {
  const { t, told } = useWords();
  const [range, setRange] = useState<{ from?: string | undefined; to?: string | undefined; perSecond: number | null }>(
    () => {
      const now = Math.floor(nowMs() / 60_000) * 60_000;
      return { from: new Date(now - dayMs).toISOString(), to: new Date(now).toISOString(), perSecond: null };
    },
  );
  const [also, setAlso] = useState({ missed: false, reverse: false });
  const set = (change: Partial<typeof range>) => setRange((before) => ({ ...before, ...change }));
  const { from, to } = range;
  const isTime = from !== undefined && to !== undefined && Date.parse(from) < Date.parse(to);
  const given = isTime
    ? {
        from,
        to,
        perSecond: range.perSecond,
        ...also,
      }
    : undefined;
  // Kept as JSON text, because an object would be a new value at every render.
  const said = given && JSON.stringify(given);
  const [settled] = useDebouncedValue(said, 250);
  const asked = settled === undefined ? undefined : (JSON.parse(settled) as NonNullable<typeof given>);
  const filter = { task };
  const preview = useAnswer(
    "previewOperation",
    { kind: "backfill", filter, ...(asked ? { range: asked } : {}) },
    { enabled: asked !== undefined },
  );
  const total = settled === said ? (preview.data?.total ?? 0) : 0;
  const time = (name: "from" | "to") => (
    <TimeField inForm label={t(`backfill.${name}`)} value={range[name]} onChange={(at) => set({ [name]: at })} />
  );
  return (
    <Begin
      title={t("backfill.title", { task })}
      consequence={t("backfill.told")}
      act={t("backfill.act")}
      blocked={total === 0}
      request={given && { kind: "backfill", filter, range: given }}
      onClose={onClose}
    >
      <div className={css.form} style={{ marginTop: 14 }}>
        <div className={css.pair}>
          {time("from")}
          {time("to")}
        </div>
        <NumberInput
          label={t("backfill.rate")}
          placeholder={t("backfill.anyRate")}
          min={1}
          max={10_000}
          value={range.perSecond ?? ""}
          onChange={(value) => set({ perSecond: typeof value === "number" ? value : null })}
        />
        {(["missed", "reverse"] as const).map((name) => (
          <Switch
            key={name}
            label={t(`backfill.${name}`)}
            checked={also[name]}
            onChange={(event) => {
              const { checked } = event.currentTarget;
              setAlso((before) => ({ ...before, [name]: checked }));
            }}
          />
        ))}
        <div className={css.preview} role="status">
          {isTime ? (
            <Shown of={preview} rows={2}>
              {(data) =>
                data.total === 0 ? (
                  t("backfill.none")
                ) : (
                  <>
                    <strong>{t("backfill.slots", { n: data.total })}</strong>
                    <Names names={data.first.map((one) => told(one))} total={data.total} most={namesShown} />
                  </>
                )
              }
            </Shown>
          ) : (
            t("backfill.wrong")
          )}
        </div>
      </div>
    </Begin>
  );
}
