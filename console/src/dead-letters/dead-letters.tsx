/** Runs whose last attempt failed, grouped by cause: each cause is one row, however often it occurred. */
import { Button } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useRef, useState } from "react";
import { useAnswer } from "../api/answers.ts";
import type { Filter } from "../filter.ts";
import { useWords } from "../messages/words.ts";
import { useNow } from "../now.ts";
import { Filters } from "../parts/form/filters.tsx";
import { RangeField, useBounds } from "../parts/form/range-field.tsx";
import { Card, Page } from "../parts/layout/page.tsx";
import { Nothing, Shown } from "../parts/state/notice.tsx";
import { AnchoredList } from "../parts/table/anchored-list.tsx";
import { stepRows } from "../parts/table/step-rows.ts";
import { Away } from "../parts/value/moment.tsx";
import { plain } from "../parts/value/plain.ts";
import { namedOf, TaskNameField } from "../tasks/name-field.tsx";
import css from "./dead-letters.module.css";
import { Ask, type Asked, DeadGroup } from "./group.tsx";
import { type Group, type Narrowing, wordsOf } from "./words.ts";

const everyMs = 10_000;

export function DeadLetters() {
  const { t, count } = useWords();
  const search = useSearch({ from: "/dead-letters" });
  const navigate = useNavigate({ from: "/dead-letters" });
  const wide = useMediaQuery("(min-width: 1080px)", true, { getInitialValueInEffect: false }) ?? true;
  const bounds = useBounds(search);
  const { task, matching, within, since, until, fingerprint } = search;
  const narrowing = useMemo<Narrowing>(() => ({ ...namedOf({ task, matching }), ...bounds }), [task, matching, bounds]);
  const dead = useAnswer("listDeadGroups", { ...narrowing }, { everyMs, keep: true });
  const groups = dead.data?.groups ?? [];
  // The server returns only the largest groups. A group that the address names but that is not among them is read separately.
  const isUnlisted =
    dead.data !== undefined && fingerprint !== undefined && !groups.some((group) => group.fingerprint === fingerprint);
  const unlisted = useAnswer(
    "listDeadGroups",
    { ...narrowing, fingerprint: fingerprint ?? "" },
    { everyMs, enabled: isUnlisted },
  );
  const filters = [task, matching, within, since, until];
  const isFiltered = filters.some((one) => one !== undefined);
  const chosen = filters.join(" ");
  // While the list for a changed filter is being fetched, `groups` are still those of the previous filter.
  const listed = useRef("");
  if (!dead.isPlaceholderData) listed.current = chosen;
  const pinned = usePinned(chosen, dead.isPlaceholderData ? undefined : groups);
  const open =
    [...groups, ...(unlisted.data?.groups ?? [])].find((group) => group.fingerprint === (fingerprint ?? pinned)) ??
    (wide && !fingerprint ? groups[0] : null);
  const [asked, setAsked] = useState<Asked>();
  const filter = (change: Filter) =>
    void navigate({ search: (before: Filter) => ({ ...before, ...change, fingerprint: undefined }), replace: true });
  const total = dead.data?.total ?? { groups: 0, letters: 0 };
  const pane = open ? (
    <DeadGroup key={open.fingerprint} group={open} narrowing={narrowing} onAsk={setAsked} />
  ) : fingerprint && unlisted.data ? (
    <Card>
      <Nothing title={t("dead.gone")}>{t("dead.goneTold")}</Nothing>
    </Card>
  ) : null;
  return (
    <Page
      title={t("screen.dead")}
      below={groups.length > 0 ? t("dead.sum", { letters: count(total.letters), n: total.groups }) : t("dead.lead")}
    >
      {!wide && fingerprint && dead.data ? (
        <>
          <Link to="/dead-letters" search={{ ...search, fingerprint: undefined }} className={css.back}>
            ← {t("dead.all")}
          </Link>
          {pane}
        </>
      ) : (
        <>
          <Filters onClear={isFiltered ? () => void navigate({ search: {}, replace: true }) : undefined}>
            <TaskNameField task={task} matching={matching} onChange={(named) => filter({ ...named })} />
            <RangeField search={search} onChange={filter} />
          </Filters>
          <Shown of={dead} rows={8}>
            {() =>
              groups.length === 0 && !fingerprint ? (
                <Card>
                  {isFiltered ? (
                    <Nothing title={t("dead.noneMatch")}>{t("dead.noneMatchTold")}</Nothing>
                  ) : (
                    <Nothing title={t("dead.none")}>
                      <p>{t("dead.noneTold")}</p>
                      <code>carillon dead list</code>
                    </Nothing>
                  )}
                </Card>
              ) : (
                <div className={css.both}>
                  <AnchoredList rows={groups} keyOf={({ fingerprint }) => fingerprint} list={listed.current}>
                    {(rows, isGone) => (
                      <Groups
                        groups={rows}
                        isGone={isGone}
                        more={total.groups - groups.length}
                        open={open?.fingerprint}
                      />
                    )}
                  </AnchoredList>
                  {wide && <div className={css.pane}>{pane}</div>}
                </div>
              )
            }
          </Shown>
        </>
      )}
      {asked && <Ask {...asked} narrowing={narrowing} onClose={() => setAsked(undefined)} />}
    </Page>
  );
}

/**
 * The fingerprint of the group that is open by default. This is the first group when the list arrives, and it stays open while it
 * exists: groups are sorted by size, and another group that becomes larger must not replace it while the user works.
 * @param groups undefined while the list is being fetched
 */
function usePinned(list: string, groups: Group[] | undefined): string | undefined {
  const pinned = useRef({ list, fingerprint: undefined as string | undefined });
  if (pinned.current.list !== list) pinned.current = { list, fingerprint: undefined };
  if (groups && !groups.some(({ fingerprint }) => fingerprint === pinned.current.fingerprint))
    pinned.current = { list, fingerprint: groups[0]?.fingerprint };
  return pinned.current.fingerprint;
}

const tasksShown = 2;
/** The number of groups that the page shows at first, the largest ones; the button for more adds as many. */
const groupsShown = 100;

/** @param more true if the server has more groups than the list */
function Groups({
  groups,
  isGone,
  more,
  open,
}: {
  groups: Group[];
  isGone: (group: Group) => boolean;
  more: number;
  open: string | undefined;
}) {
  const { t, count } = useWords();
  const search = useSearch({ from: "/dead-letters" });
  const now = useNow();
  const [shown, setShown] = useState(groupsShown);
  const oldest = groups.reduce((least, { first }) => Math.min(least, Date.parse(first)), now);
  return (
    <ul className={css.groups} aria-label={t("dead.kinds")} onKeyDown={stepRows}>
      {groups.slice(0, shown).map((group) => (
        <li key={group.fingerprint} data-gone={isGone(group) || undefined}>
          <Link
            to="/dead-letters"
            search={{ ...search, fingerprint: group.fingerprint }}
            className={css.group}
            aria-current={group.fingerprint === open || undefined}
            data-row
          >
            <span className={`${css.count} figures`}>{count(group.letters)}</span>
            <span className={css.words}>{plain(wordsOf(group) ?? t("dead.unknown"))}</span>
            <span className={`${css.tasks} cut`}>
              {group.tasks.slice(0, tasksShown).map(plain).join(", ")}
              {group.taskCount > tasksShown && ` ${t("bulk.andMore", { n: group.taskCount - tasksShown })}`}
            </span>
            <span className={css.last}>
              <Away at={group.last} past />
            </span>
            <Stretch first={Date.parse(group.first)} last={Date.parse(group.last)} oldest={oldest} now={now} />
          </Link>
        </li>
      ))}
      {groups.length > shown && (
        <li className={css.more}>
          <Button size="compact-sm" variant="default" onClick={() => setShown(shown + groupsShown)}>
            {t("bulk.andMore", { n: groups.length - shown })}
          </Button>
        </li>
      )}
      {more > 0 && shown >= groups.length && <li className={css.more}>{t("dead.unlisted", { n: more })}</li>}
    </ul>
  );
}

/** The time span of a group's failures, on the same axis for all groups; the right end is now. */
function Stretch({ first, last, oldest, now }: { first: number; last: number; oldest: number; now: number }) {
  const whole = Math.max(1, now - oldest);
  const left = (100 * (first - oldest)) / whole;
  const right = (100 * (now - last)) / whole;
  return (
    <span className={css.stretch} aria-hidden>
      <span style={{ left: `${Math.min(99, left)}%`, right: `${Math.min(99, Math.max(0, right))}%` }} />
    </span>
  );
}
