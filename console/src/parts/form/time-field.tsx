/** Fields for times and days, typed as `2026-10-25 02:30` or picked from the browser's own calendar. */
import { ActionIcon, TextInput } from "@mantine/core";
import { IconCalendarEvent } from "@tabler/icons-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useWords } from "../../messages/words.ts";
import { nowMs } from "../../now.ts";
import { localText, readTime, type Side } from "./local-time.ts";
import css from "./time-field.module.css";

/**
 * A field for a time in the viewer's chosen zone, which may differ from the browser's zone; the field shows the zone's name.
 * @param side the day meant by a time of day without a date; see `Side`
 */
export function TimeField({
  label,
  value,
  onChange,
  inForm = false,
  hint,
  side = "last",
}: {
  label: string;
  value: string | undefined;
  onChange: (iso: string | undefined) => void;
  inForm?: boolean;
  /** Advice shown after the zone, below the label; used only if `inForm` is true. */
  hint?: string;
  side?: Side;
}) {
  const { zone } = useWords();
  const ms = value === undefined ? Number.NaN : Date.parse(value);
  return (
    <Typed
      type="datetime-local"
      hint="2026-01-31 18:00"
      label={label}
      {...(inForm ? { description: [zone, ...(hint ? [hint] : [])].join(" · ") } : { zone })}
      value={Number.isNaN(ms) ? "" : localText(ms, zone)}
      onTyped={(text) => {
        const at = text === "" ? undefined : readTime(text, zone, nowMs(), side);
        if (text !== "" && at === undefined) return false;
        onChange(at === undefined ? undefined : new Date(at).toISOString());
        return true;
      }}
    />
  );
}

/** A field for a day, `2026-10-25`. @param onChange called with "" if the field is empty */
export function DayField(props: { label: string; value: string; error?: ReactNode; onChange: (day: string) => void }) {
  const { onChange, ...shown } = props;
  return (
    <Typed
      type="date"
      hint="2026-01-31"
      {...shown}
      onTyped={(text) => {
        if (text !== "" && !(text.length === 10 && readTime(text, "UTC", 0, "last") !== undefined)) return false;
        onChange(text);
        return true;
      }}
    />
  );
}

interface TypedProps {
  type: "date" | "datetime-local";
  /** An example of the expected text, such as `2026-10-25`. */
  hint: string;
  label: string;
  /** The zone's name; if present, the label and the zone are inside the field, as in a bar of filters. */
  zone?: string;
  description?: string;
  error?: ReactNode;
  /** The value as the field shows it; "" for none. */
  value: string;
  /** @returns false if the text is not a value */
  onTyped: (text: string) => boolean;
}

function Typed({ type, hint, label, zone, description, error, value, onTyped }: TypedProps) {
  const { t } = useWords();
  const [text, setText] = useState(value);
  const [isWrong, setWrong] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  const isTyping = useRef(false);
  // A new value from outside (link, back button, another zone) replaces the text, except while the field has the focus.
  useEffect(() => {
    if (!isTyping.current) setText(value);
  }, [value]);
  const take = (typed: string) => {
    setText(typed);
    setWrong(!onTyped(typed.trim()));
  };
  const inBar = zone !== undefined;
  return (
    <TextInput
      className={inBar ? css.time : ""}
      {...(inBar
        ? {
            "aria-label": `${label} (${zone})`,
            leftSection: (
              <span className={css.label} title={zone}>
                {label}
                <small>{zone.slice(zone.lastIndexOf("/") + 1).replaceAll("_", " ")}</small>
              </span>
            ),
            leftSectionWidth: 92,
          }
        : { label, description })}
      placeholder={hint}
      autoComplete="off"
      value={text}
      error={isWrong ? (inBar ? true : t("time.wrong", { hint })) : error}
      onFocus={() => {
        isTyping.current = true;
      }}
      onChange={(event) => take(event.currentTarget.value)}
      onBlur={() => {
        isTyping.current = false;
        if (!isWrong) setText(value);
      }}
      rightSection={
        <span className={css.pick}>
          <input
            ref={picker}
            type={type}
            tabIndex={-1}
            aria-hidden
            value={value.replace(" ", "T")}
            onChange={(event) => take(event.currentTarget.value.replace("T", " "))}
          />
          <ActionIcon
            variant="subtle"
            color="gray"
            size={26}
            aria-label={t("time.pick", { what: label })}
            onClick={() => picker.current?.showPicker()}
          >
            <IconCalendarEvent size={16} color="var(--c-soft)" aria-hidden />
          </ActionIcon>
        </span>
      }
    />
  );
}
