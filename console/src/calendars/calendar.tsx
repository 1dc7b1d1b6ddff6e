/** One calendar: its year, its effects on tasks, its versions. The user edits the calendar by clicking days. */
import { ActionIcon, Button } from "@mantine/core";
import { IconChevronLeft, IconChevronRight, IconPencil, IconTrash } from "@tabler/icons-react";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { call } from "../api/call.ts";
import { useReach } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { useNow } from "../now.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { Card, Columns, Page } from "../parts/layout/page.tsx";
import { Shown } from "../parts/state/notice.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { plain } from "../parts/value/plain.ts";
import css from "./calendar.module.css";
import { weekendWords } from "./calendars.tsx";
import { type Calendar, contentOf, type Drafted } from "./content.ts";
import { type Content, type DayKind, daysOfYear, kindsOf, todayIn, yearOf } from "./days.ts";
import { Draft } from "./draft.tsx";
import { Effects } from "./effects.tsx";
import { CalendarVersions } from "./versions.tsx";
import yearCss from "./year.module.css";
import { Year } from "./year.tsx";

const earliest = 1970;
const latest = 9_999;

export function CalendarScreen() {
  const { t } = useWords();
  const words = useWords();
  const { calendar: name } = useParams({ from: "/calendars/$calendar" });
  const calendar = useAnswer("getCalendar", { calendar: name });
  const reach = useReach("editor");
  const [draft, setDraft] = useState<Drafted>();
  const { data } = calendar;
  const may = reach.on(name);
  return (
    <Page
      title={plain(name)}
      above={<Link to="/calendars">{t("screen.calendars")}</Link>}
      below={
        data &&
        `${data.zone} · ${weekendWords(data.weekend, words)} · ${t("calendar.holidays", {
          n: data.holidays.length,
          count: words.count(data.holidays.length),
        })}`
      }
      acts={
        data && may && !draft && <Acts calendar={data} onEdit={() => setDraft({ ...contentOf(data), from: data })} />
      }
    >
      <Shown of={calendar} rows={10}>
        {(found) => <Whole calendar={found} draft={draft} setDraft={setDraft} may={may} />}
      </Shown>
    </Page>
  );
}

function Whole({
  calendar,
  draft,
  setDraft,
  may,
}: {
  calendar: Calendar;
  draft: Drafted | undefined;
  setDraft: (draft: Drafted | undefined) => void;
  may: boolean;
}) {
  const { t } = useWords();
  const search = useSearch({ from: "/calendars/$calendar" });
  const now = useNow();
  const asked = search.version !== undefined && /^[1-9]\d{0,8}$/.test(search.version) ? Number(search.version) : 0;
  const isOld = !draft && asked > 0 && asked !== calendar.version;
  const old = useAnswer("getCalendar", { calendar: calendar.name, version: asked || 1 }, { enabled: isOld });
  const shown: Content = draft ?? (isOld && old.data ? old.data : calendar);
  const today = todayIn(shown.zone, now);
  const year = search.year && /^\d{4}$/.test(search.year) ? Math.max(earliest, Number(search.year)) : yearOf(today);
  const was = draft?.from;
  const toggle = (day: string) => {
    if (!draft) return;
    const { holidays } = draft;
    const next = holidays.includes(day) ? holidays.filter((one) => one !== day) : [...holidays, day].sort();
    setDraft({ ...draft, holidays: next });
  };
  return (
    <>
      {draft && (
        <Draft present={calendar.version} draft={draft} onChange={setDraft} onClose={() => setDraft(undefined)} />
      )}
      <Card title={<Years year={year} />} more={<Key content={shown} year={year} />}>
        {isOld && !old.data ? (
          <Shown of={old}>{() => null}</Shown>
        ) : (
          <Year year={year} content={shown} today={today} was={was} onToggle={draft ? toggle : undefined} />
        )}
      </Card>
      <Columns shares={[3, 2]}>
        <Card
          title={t(draft ? "calendar.wouldLose" : "calendar.takes")}
          more={<span className="soft">{t("calendar.takesTold", { year: String(year) })}</span>}
        >
          <Effects tasks={calendar.tasks} content={shown} was={was} year={year} today={today} />
        </Card>
        {!draft && <CalendarVersions calendar={calendar} chosen={isOld ? asked : calendar.version} may={may} />}
      </Columns>
    </>
  );
}

/** Links to the previous and the next year, which is kept in the address. */
function Years({ year }: { year: number }) {
  const { t } = useWords();
  const navigate = useNavigate({ from: "/calendars/$calendar" });
  const to = (next: number) =>
    void navigate({ search: (before) => ({ ...before, year: String(next) }), replace: true, resetScroll: false });
  const step = (by: 1 | -1, label: string, icon: ReactNode) => (
    <ActionIcon
      variant="default"
      size={30}
      aria-label={label}
      disabled={year + by < earliest || year + by > latest}
      onClick={() => to(year + by)}
    >
      {icon}
    </ActionIcon>
  );
  return (
    <span className={css.years}>
      {step(-1, t("calendar.yearBefore"), <IconChevronLeft size={17} aria-hidden />)}
      <span className="figures">{year}</span>
      {step(1, t("calendar.yearAfter"), <IconChevronRight size={17} aria-hidden />)}
    </span>
  );
}

function Key({ content, year }: { content: Content; year: number }) {
  const { t, count } = useWords();
  const counts = useMemo(() => {
    const kind = kindsOf(content);
    const found: Record<DayKind, number> = { work: 0, weekend: 0, holiday: 0 };
    for (const day of daysOfYear(year)) found[kind(day)] += 1;
    return found;
  }, [content, year]);
  return (
    <span className={css.keys}>
      {(["work", "weekend", "holiday"] as const).map((kind) => (
        <span key={kind} className={yearCss.key}>
          <span className={`${yearCss.day} figures`} data-kind={kind}>
            {count(counts[kind])}
          </span>
          {t(`calendar.kind.${kind}`)}
        </span>
      ))}
    </span>
  );
}

function Acts({ calendar, onEdit }: { calendar: Calendar; onEdit: () => void }) {
  const { t } = useWords();
  const navigate = useNavigate();
  const [isRemoving, setRemoving] = useState(false);
  const { name, tasks } = calendar;
  return (
    <>
      <Button leftSection={<IconPencil size={17} aria-hidden />} onClick={onEdit}>
        {t("task.edit")}
      </Button>
      {tasks.length === 0 && (
        <Button variant="default" leftSection={<IconTrash size={17} aria-hidden />} onClick={() => setRemoving(true)}>
          {t("calendar.remove")}
        </Button>
      )}
      {isRemoving && (
        <Confirm
          title={t("calendar.removeTitle", { calendar: name })}
          consequence={t("calendar.removeTold")}
          act={t("calendar.remove")}
          grave
          onDo={async ({ reason, key, signal }) => {
            await call("removeCalendar", { calendar: name, reason }, { key });
            outdate("listCalendars");
            const again = async () => {
              const content = { calendar: name, ...contentOf(calendar), reason: t("act.undo") };
              await call("setCalendar", content, { ifVersion: 0 });
              outdate("listCalendars");
            };
            toast({ text: t("calendar.removed", { calendar: name }), undo: again });
            if (!signal.aborted) void navigate({ to: "/calendars" });
          }}
          onClose={() => setRemoving(false)}
        />
      )}
    </>
  );
}
