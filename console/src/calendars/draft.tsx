import { Button, Group, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { call, isRefusal } from "../api/call.ts";
import { keys } from "../api/keys.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { ZoneField } from "../parts/form/zone-field.tsx";
import { Card } from "../parts/layout/page.tsx";
import { Trouble } from "../parts/state/notice.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { Meanwhile } from "../parts/value/versions.tsx";
import css from "./calendar.module.css";
import { Compared } from "./compared.tsx";
import { contentOf, type Drafted, outdateCalendars, toastNotices } from "./content.ts";
import type { Content } from "./days.ts";
import { DayRange, IcsField, Weekend } from "./fields.tsx";

/** The holidays that only the new content of a calendar has (`added`), and those that only the old content has (`removed`). */
function dayChanges(was: Content, is: Content): { added: string[]; removed: string[] } {
  const [before, after] = [new Set(was.holidays), new Set(is.holidays)];
  return {
    added: is.holidays.filter((day) => !before.has(day)),
    removed: was.holidays.filter((day) => !after.has(day)),
  };
}

/** The form for editing a calendar. Saving stores the draft as a new version, unless another user has stored one meanwhile. */
export function Draft({
  present,
  draft,
  onChange,
  onClose,
}: {
  /** The newest stored version, which may be newer than the version that the draft was started from. */
  present: number;
  draft: Drafted;
  onChange: (draft: Drafted) => void;
  onClose: () => void;
}) {
  const { t } = useWords();
  const [reason, setReason] = useState("");
  const [keyOf] = useState(keys);
  const { from } = draft;
  const { name, version } = from;
  const { added, removed } = dayChanges(from, draft);
  const isSame =
    added.length + removed.length === 0 &&
    draft.ics === undefined &&
    draft.zone === from.zone &&
    draft.weekend.join() === from.weekend.join();
  const save = useMutation({
    mutationFn: (allowShrink: boolean) => {
      const given = {
        calendar: name,
        ...contentOf(draft),
        reason: reason.trim() || undefined,
        ...(draft.ics === undefined ? {} : { ics: draft.ics }),
        ...(allowShrink ? { allowShrink } : {}),
      };
      return call("setCalendar", given, { key: keyOf(given), ifVersion: version });
    },
    onSuccess: (stored) => {
      outdateCalendars();
      const undo = () =>
        void call(
          "setCalendar",
          { calendar: name, ...contentOf(from), reason: t("act.undo"), allowShrink: true },
          { ifVersion: stored.version },
        )
          .then(outdateCalendars)
          .catch((error: unknown) =>
            toast({ failed: true, text: error instanceof Error ? error.message : String(error) }),
          );
      toastNotices(stored, { t });
      toast({ text: t("calendar.stored", { calendar: name, version: String(stored.version) }), undo });
      onClose();
    },
  });
  const shrinks = isRefusal(save.error, "CALENDAR_SHRINKS");
  return (
    <Card title={t("calendar.editTitle")} className={css.draft}>
      <form
        className={css.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (!isSame) save.mutate(false);
        }}
      >
        <p className="soft">{t("calendar.editTold")}</p>
        <div className={css.pair}>
          <ZoneField
            label={t("task.zone")}
            description={t("calendar.zoneTold")}
            value={draft.zone}
            onChange={(zone) => onChange({ ...draft, zone })}
          />
          <Weekend value={draft.weekend} onChange={(weekend) => onChange({ ...draft, weekend })} />
          <DayRange
            onAdd={(days) => onChange({ ...draft, holidays: [...new Set([...draft.holidays, ...days])].sort() })}
          />
          <IcsField onChange={(ics) => onChange({ ...draft, ics })} />
        </div>
        <p role="status">
          {added.length + removed.length === 0
            ? t("calendar.noneChanged")
            : `${t("calendar.added", { n: added.length })} · ${t("calendar.taken", { n: removed.length })}`}
          {draft.ics !== undefined && ` · ${t("calendar.icsWill")}`}
        </p>
        {!isSame && <Compared draft={draft} />}
        {present !== version && !save.isPending && <Meanwhile version={present} />}
        {save.error && !shrinks && <Trouble error={save.error} small />}
        <div className={css.save}>
          <TextInput
            aria-label={t("confirm.reason")}
            placeholder={t("confirm.reason")}
            maxLength={1_000}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
          />
          <Group gap="sm">
            <Button variant="default" onClick={onClose}>
              {t("act.leave")}
            </Button>
            <Button type="submit" loading={save.isPending} disabled={isSame}>
              {t("calendar.save")}
            </Button>
          </Group>
        </div>
      </form>
      {shrinks && (
        <Confirm
          title={t("calendar.shrinksTitle", { calendar: name })}
          consequence={<p>{t("calendar.shrinksTold")}</p>}
          act={t("calendar.save")}
          grave
          asksReason={false}
          onDo={() => save.mutateAsync(true)}
          onClose={() => save.reset()}
        />
      )}
    </Card>
  );
}
