import { TextInput } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { outdate } from "../api/answers.ts";
import { call } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { ZoneField } from "../parts/form/zone-field.tsx";
import { ownZone } from "../preferences.ts";
import css from "./calendar.module.css";
import { toastNotices } from "./content.ts";
import { IcsField, Weekend } from "./fields.tsx";

export function NewCalendar({ onClose }: { onClose: () => void }) {
  const { t } = useWords();
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const [zone, setZone] = useState(ownZone);
  const [weekend, setWeekend] = useState([0, 6]);
  const [ics, setIcs] = useState<string>();
  return (
    <Confirm
      title={t("calendar.new")}
      consequence={t("calendar.newTold")}
      act={t("calendar.make")}
      blocked={name.trim() === ""}
      onDo={async ({ reason, key, signal }) => {
        const content = { zone, weekend, holidays: [], ...(ics === undefined ? {} : { ics }) };
        // `ifVersion: 0` means that the calendar must not exist yet, so that an existing calendar is never overwritten.
        const stored = await call("setCalendar", { calendar: name.trim(), ...content, reason }, { key, ifVersion: 0 });
        toastNotices(stored, { t });
        outdate("listCalendars", "getCalendar");
        if (!signal.aborted) void navigate({ to: "/calendars/$calendar", params: { calendar: name.trim() } });
      }}
      onClose={onClose}
    >
      <div className={`${css.form} ${css.asked}`}>
        <TextInput
          data-autofocus
          label={t("calendar.name")}
          description={t("calendar.nameTold")}
          maxLength={100}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <ZoneField label={t("task.zone")} description={t("calendar.zoneTold")} value={zone} onChange={setZone} />
        <Weekend value={weekend} onChange={setWeekend} />
        <IcsField onChange={setIcs} />
      </div>
    </Confirm>
  );
}
