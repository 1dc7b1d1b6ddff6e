/** The audit: every change with its author, the values before and after, and the reason. */
import { Select, TextInput } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { useSees } from "../api/may.ts";
import type { Filter } from "../filter.ts";
import { useWords } from "../messages/words.ts";
import { Filters, useTyped } from "../parts/form/filters.tsx";
import { RangeField, useBounds } from "../parts/form/range-field.tsx";
import { Card, Page } from "../parts/layout/page.tsx";
import { Nothing, Shown } from "../parts/state/notice.tsx";
import { AnchoredList } from "../parts/table/anchored-list.tsx";
import { More } from "../parts/table/more.tsx";
import { usePages } from "../parts/table/pages.ts";
import { stepRows } from "../parts/table/step-rows.ts";
import css from "./audit.module.css";
import { Bunch } from "./bunch.tsx";
import { bunchesOf } from "./bunches.ts";
import { Entry } from "./entry.tsx";
import { type AuditEntry, abouts, acts, keyOf } from "./words.ts";

const pageSize = 50;
const everyMs = 15_000;

export function Audit() {
  const { t } = useWords();
  const sees = useSees("admin", true);
  return (
    <Page title={t("screen.audit")} below={t("audit.lead")}>
      {sees ? (
        <Entries />
      ) : (
        <Card>
          <Nothing title={t("audit.denied")}>{t("audit.deniedTold")}</Nothing>
        </Card>
      )}
    </Page>
  );
}

function Entries() {
  const { t, day } = useWords();
  const search = useSearch({ from: "/audit" });
  const navigate = useNavigate({ from: "/audit" });
  const filter = (change: Filter) =>
    void navigate({ search: (before: Filter) => ({ ...before, ...change }), replace: true });
  const about = abouts.find((one) => one === search.about);
  const one = search.entry !== undefined && /^[1-9]\d{0,14}$/.test(search.entry) ? Number(search.entry) : undefined;
  const bounds = useBounds(search);
  const asked = useMemo(
    () => ({
      limit: pageSize,
      ...(about ? { about } : {}),
      ...(search.named ? { named: search.named } : {}),
      ...(search.who ? { who: search.who } : {}),
      ...(search.act ? { act: search.act } : {}),
      ...bounds,
      ...(one === undefined ? {} : { entry: one }),
    }),
    [about, search.named, search.who, search.act, bounds, one],
  );
  const entries = usePages("listAudit", asked, { everyMs });
  const isFiltered = Object.keys(search).length > 0;
  return (
    <>
      <Filters onClear={isFiltered ? () => void navigate({ search: {}, replace: true }) : undefined}>
        <Typed label={t("audit.who")} value={search.who} onChange={(who) => filter({ who })} isSearch />
        <Select
          className={css.choice}
          aria-label={t("audit.act")}
          placeholder={t("audit.anyAct")}
          data={acts.map((value) => ({ value, label: t(`audit.act.${keyOf(value)}` as "audit.act.create") }))}
          value={search.act ?? null}
          onChange={(act) => filter({ act: act ?? undefined })}
          searchable
          clearable
          clearButtonProps={{ "aria-label": t("filter.clear") }}
        />
        <Select
          className={css.choice}
          aria-label={t("audit.about")}
          placeholder={t("audit.anything")}
          data={abouts.map((value) => ({ value, label: t(`audit.about.${keyOf(value)}` as "audit.about.task") }))}
          value={about ?? null}
          onChange={(chosen) => filter({ about: chosen ?? undefined })}
          clearable
          clearButtonProps={{ "aria-label": t("filter.clear") }}
        />
        <Typed label={t("audit.named")} value={search.named} onChange={(named) => filter({ named })} />
        <RangeField search={search} onChange={filter} />
      </Filters>
      <Shown of={entries} rows={10}>
        {(rows) =>
          rows.length === 0 ? (
            <Card>
              {isFiltered ? (
                <Nothing title={t("audit.noneMatch")}>{t("audit.noneMatchTold")}</Nothing>
              ) : (
                <Nothing title={t("overview.noChanges")}>{t("audit.noneTold")}</Nothing>
              )}
            </Card>
          ) : (
            <AnchoredList rows={rows} keyOf={({ entry }) => String(entry)} list={entries.list} more={entries.more}>
              {(shown) => (
                // biome-ignore lint/a11y/noStaticElementInteractions: the key presses come from the buttons of its entries.
                <div className={css.days} onKeyDown={stepRows}>
                  {byDay(shown, (entry) => day(Date.parse(entry.at))).map(([name, ofDay]) => (
                    <section key={name} aria-label={name}>
                      <h2 className={css.day}>{name}</h2>
                      <ul className={css.entries}>
                        {bunchesOf(ofDay).map((bunch) => {
                          const [entry] = bunch as [AuditEntry];
                          return bunch.length > 1 ? (
                            <Bunch key={bunch.at(-1)?.entry} entries={bunch} />
                          ) : (
                            <Entry key={entry.entry} entry={entry} isOpen={entry.entry === one} />
                          );
                        })}
                      </ul>
                    </section>
                  ))}
                </div>
              )}
            </AnchoredList>
          )
        }
      </Shown>
      <More of={entries} />
    </>
  );
}

/** Groups the rows by day and keeps their order, newest first. */
function byDay(rows: AuditEntry[], dayOf: (entry: AuditEntry) => string): [string, AuditEntry[]][] {
  const days: [string, AuditEntry[]][] = [];
  for (const entry of rows) {
    const name = dayOf(entry);
    const last = days.at(-1);
    if (last?.[0] === name) last[1].push(entry);
    else days.push([name, [entry]]);
  }
  return days;
}

/** A text filter that is written to the address when the user stops typing. */
function Typed({
  label,
  value = "",
  onChange,
  isSearch = false,
}: {
  label: string;
  value?: string | undefined;
  onChange: (text: string | undefined) => void;
  isSearch?: boolean;
}) {
  const [text, setText] = useTyped(value, 300, (typed) => onChange(typed === "" ? undefined : typed));
  return (
    <TextInput
      className={css.text}
      aria-label={label}
      placeholder={label}
      maxLength={200}
      value={text}
      onChange={(event) => setText(event.currentTarget.value)}
      {...(isSearch ? { "data-search": true } : {})}
    />
  );
}
