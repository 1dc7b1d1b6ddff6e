/** Edits a task's parts. What the schedule comes to is worked out here, by the code that the planner runs, while one types. */
import { Button, Group, NumberInput, SegmentedControl, Select, Textarea, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useMemo, useRef, useState } from "react";
import type { Calendar } from "../../../scheduler/src/calendar.ts";
import { judgedSlot } from "../../../scheduler/src/coming-slots.ts";
import { cronOfPhrase } from "../../../scheduler/src/cron-phrase.ts";
import { parseDuration } from "../../../scheduler/src/duration.ts";
import { CarillonError, type ErrorCode, isCarillonError } from "../../../scheduler/src/errors.ts";
import { compileSchedule, validateSchedule } from "../../../scheduler/src/schedule.ts";
import { plannedSchedule } from "../../../scheduler/src/slot-rules.ts";
import type { TaskDefinition, TaskOptions } from "../../../scheduler/src/task.ts";
import { edited } from "../../../scheduler/src/task-edits.ts";
import { pathOf } from "../../../scheduler/src/written-task.ts";
import { outdate, useAnswer } from "../api/answers.ts";
import { call, type Given, isRefusal } from "../api/call.ts";
import { keys } from "../api/keys.ts";
import { useWords } from "../messages/words.ts";
import { useNow } from "../now.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Trouble } from "../parts/notice.tsx";
import { toast } from "../parts/toasts.tsx";
import { Meanwhile } from "../parts/versions.tsx";
import { ownZone } from "../preferences.ts";
import { type Rules, rulesChanges, rulesOf } from "./edit-parts.ts";
import { EditRules } from "./edit-rules.tsx";
import { type Schedule, scheduleWords } from "./schedule-words.ts";
import css from "./task.module.css";
import type { Task } from "./task.tsx";
import { Changes } from "./versions.tsx";

type Options = Given<"editTask">["options"];

interface Form extends Rules {
  kind: Schedule["type"];
  /** A cron, or words that mean one. */
  cron: string;
  zone: string;
  every: string;
  /** "": none. */
  jitter: string;
  /** null: as it is, or as the expression has it by itself. */
  gap: string | null;
  fold: string | null;
  description: string;
  timeout: string;
  attempts: number;
  backoff: string;
  delay: string;
  maxDelay: string;
  overlap: string;
  /** Runs at once, where the next waits. */
  atOnce: number;
  misfire: string;
  priority: number;
  onWorkerLost: string;
}

const slotsShown = 5;
const zones = Intl.supportedValuesOf("timeZone");

const ownParts = (definition: Record<string, unknown>) =>
  definition as unknown as TaskDefinition & { schedule: Schedule };

const seconds = (ms: number) => (ms % 1_000 === 0 ? `${ms / 1_000}s` : `${ms}ms`);
const short = (ms: number) =>
  ms !== 0 && ms % 86_400_000 === 0
    ? `${ms / 86_400_000}d`
    : ms !== 0 && ms % 3_600_000 === 0
      ? `${ms / 3_600_000}h`
      : ms !== 0 && ms % 60_000 === 0
        ? `${ms / 60_000}m`
        : seconds(ms);

function formOf(task: Task): Form {
  const { schedule, ...is } = ownParts(task.definition);
  return {
    ...rulesOf(ownParts(task.definition)),
    kind: schedule.type,
    cron: schedule.type === "cron" ? schedule.expression : "0 3 * * *",
    zone: schedule.type === "cron" ? schedule.zone : ownZone,
    every: schedule.type === "every" ? short(schedule.everyMs) : "5m",
    jitter: "jitterMs" in schedule && schedule.jitterMs ? short(schedule.jitterMs) : "",
    gap: null,
    fold: null,
    description: is.description,
    timeout: is.timeoutMs === null ? "" : short(is.timeoutMs),
    attempts: is.retry.attempts,
    ...{ backoff: is.retry.backoff, delay: short(is.retry.delayMs), maxDelay: short(is.retry.maxDelayMs) },
    overlap: is.overlap.policy,
    atOnce: is.overlap.limit ?? 1,
    misfire: is.misfire.policy,
    priority: is.priority,
    onWorkerLost: is.onWorkerLost,
  };
}

/** @throws CarillonError, as the server would */
function scheduleOf(form: Form, before: Schedule): Schedule {
  // None may have been said, or not: what was not touched is no change.
  const none = "jitterMs" in before && before.jitterMs === 0 ? { jitterMs: 0 } : {};
  const jitter = form.jitter.trim() === "" ? none : { jitterMs: parseDuration(form.jitter.trim(), "jitter") };
  switch (form.kind) {
    case "cron": {
      const isCron = /^[\s\d*/,?LW#A-Z-]+$/i.test(form.cron) && form.cron.trim().split(/\s+/).length >= 5;
      const said = isCron ? null : cronOfPhrase(form.cron);
      const kept =
        before.type === "cron" && before.expression === form.cron ? { gap: before.gap, overlap: before.overlap } : {};
      return validateSchedule({
        type: "cron",
        expression: said?.expression ?? form.cron,
        zone: said?.zone ?? form.zone,
        ...kept,
        ...(form.gap === null ? {} : { gap: form.gap as "skip" }),
        ...(form.fold === null ? {} : { overlap: form.fold as "first" }),
        ...jitter,
      }) as Schedule;
    }
    case "every":
      return validateSchedule({
        ...{ type: "every", everyMs: parseDuration(form.every) },
        ...(before.type === "every" ? { mode: before.mode, anchorMs: before.anchorMs } : {}),
        ...jitter,
      }) as Schedule;
    default:
      return before.type === form.kind ? before : { type: "manual" };
  }
}

/** Only what differs from what is there. */
function optionsOf(
  form: Form,
  task: Task,
): { options: Options; changes: { part: string; was: unknown; is: unknown }[] } {
  const is = ownParts(task.definition);
  const first = formOf(task);
  const options: Record<string, unknown> = {};
  const changes: { part: string; was: unknown; is: unknown }[] = [];
  const put = (part: string, differs: boolean, was: unknown, value: unknown) => {
    if (!differs) return;
    options[part] = value;
    changes.push({ part, was, is: value });
  };
  const schedule = scheduleOf(form, is.schedule);
  put("schedule", JSON.stringify(schedule) !== JSON.stringify(validateSchedule(is.schedule)), is.schedule, schedule);
  put("description", form.description !== first.description, is.description, form.description);
  put(
    "timeout",
    form.timeout !== first.timeout,
    first.timeout || null,
    form.timeout.trim() === "" ? null : form.timeout.trim(),
  );
  const retry = ({ attempts, backoff, delay, maxDelay }: Form) => ({
    ...{ attempts, backoff, delay: delay.trim(), maxDelay: maxDelay.trim(), jitter: is.retry.jitter },
  });
  put("retry", JSON.stringify(retry(form)) !== JSON.stringify(retry(first)), retry(first), retry(form));
  const overlap = ({ overlap: policy, atOnce }: Form) =>
    policy === "queue" && atOnce !== 1 ? { allow: atOnce } : policy;
  put(
    "overlap",
    JSON.stringify(overlap(form)) !== JSON.stringify(overlap(first)),
    ...([overlap(first), overlap(form)] as const),
  );
  put("misfire", form.misfire !== first.misfire, is.misfire.policy, form.misfire);
  put("priority", form.priority !== first.priority, is.priority, form.priority);
  put("onWorkerLost", form.onWorkerLost !== first.onWorkerLost, is.onWorkerLost, form.onWorkerLost);
  for (const { part, was, is: value } of rulesChanges(form, first)) put(part, true, was, value);
  return { options: options as Options, changes };
}

/** What the edit makes of the task, judged as the server will judge it; undefined: only the server can. @throws CarillonError */
function made(task: Task, options: Options): TaskDefinition | undefined {
  try {
    return edited(ownParts(task.definition), options as TaskOptions);
  } catch (error) {
    if (isCarillonError(error)) throw error;
    // The bytes of a long payload are counted by Node alone: the server tells what is wrong with one.
    return undefined;
  }
}

/** The part that an error is about, which may be `rest`; "": none in particular. */
function placeOf(task: string, error: unknown): string {
  const told = isRefusal(error) ? new CarillonError(error.code as ErrorCode, error.message) : error;
  if (!isCarillonError(told)) return "";
  if (told.code === "CALENDAR_UNKNOWN") return "calendar";
  return told.message.startsWith("rest:") ? "rest" : (pathOf(task, told).split(".")[0] ?? "");
}

/** @param task as it was read when the form was opened: what differs from it is the edit. @param present of the version that is there now */
export function Edit({ task, present, onClose }: { task: Task; present: number; onClose: () => void }) {
  const words = useWords();
  const { t } = words;
  const [form, setForm] = useState(() => formOf(task));
  const [reason, setReason] = useState("");
  const [keyOf] = useState(keys);
  const edit = useMemo(() => {
    try {
      const asked = optionsOf(form, task);
      return { ...asked, is: made(task, asked.options), wrong: undefined };
    } catch (error) {
      return { options: {}, changes: [], is: undefined, wrong: error as Error & { hint?: string } };
    }
  }, [form, task]);
  // The last that could be read: a field does not go away while something wrong is typed.
  const seen = useRef(ownParts(task.definition).schedule);
  if (edit.is) seen.current = edit.is.schedule;
  const save = useMutation({
    mutationFn: () => {
      const given = { task: task.name, options: edit.options, reason: reason.trim() || undefined };
      return call("editTask", given, { ifVersion: task.version, key: keyOf(given) });
    },
    onSuccess: () => {
      outdate("getTask", "listTasks", "listUpcomingSlots", "listTaskVersions", "listComing");
      toast({ text: t("edit.done", { task: task.name }) });
      onClose();
    },
  });
  const set = (change: Partial<Form>) => {
    // What the server refused was said of what stood there before.
    save.reset();
    setForm((before) => ({ ...before, ...change }));
  };
  const wrong = edit.wrong ?? (save.error as (Error & { hint?: string }) | null) ?? undefined;
  const place = placeOf(task.name, wrong);
  const wrongAt = (...parts: string[]) => {
    if (!wrong || !parts.includes(place)) return undefined;
    return `${wrong.message.replace(`task ${task.name}: `, "").replace(/^rest: /, "")}. ${wrong.hint ?? ""}`;
  };
  const kinds = (
    form.kind === "at" ? ["cron", "every", "at", "manual"] : ["cron", "every", "manual"]
  ) as Schedule["type"][];
  const choices = <Value extends string>(kind: string, values: Value[]) =>
    values.map((value) => ({ value, label: t(`${kind}.${value}` as "overlap.allow") }));
  return (
    <Dialog onClose={onClose} title={t("edit.title", { task: task.name })} size={720}>
      <form
        className={css.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (!edit.wrong && edit.changes.length > 0) save.mutate();
        }}
      >
        <SegmentedControl
          className={css.kinds}
          aria-label={t("edit.kind")}
          value={form.kind}
          onChange={(kind) => set({ kind: kind as Form["kind"] })}
          data={kinds.map((kind) => ({ value: kind, label: t(`schedule.${kind}`) }))}
        />
        {form.kind === "cron" && (
          <div className={css.pair}>
            <TextInput
              label={t("edit.cron")}
              description={t("edit.cronTold")}
              maxLength={256}
              value={form.cron}
              onChange={(event) => set({ cron: event.currentTarget.value })}
              data-autofocus
              styles={{ input: { fontFamily: "var(--mono)" } }}
            />
            <Select
              label={t("task.zone")}
              description={t("edit.zoneTold")}
              data={zones.includes(form.zone) ? zones : [form.zone, ...zones]}
              searchable
              limit={50}
              value={form.zone}
              onChange={(zone) => zone && set({ zone })}
            />
          </div>
        )}
        {form.kind === "every" && (
          <TextInput
            label={t("edit.every")}
            description={t("edit.everyTold")}
            value={form.every}
            onChange={(event) => set({ every: event.currentTarget.value })}
          />
        )}
        {(form.kind === "cron" || form.kind === "every") && (
          <div className={css.pair}>
            {form.kind === "cron" && seen.current.type === "cron" && (
              <>
                <Select
                  label={t("task.gap")}
                  allowDeselect={false}
                  data={choices("gap", ["skip", "shift"])}
                  value={seen.current.gap}
                  onChange={(gap) => set({ gap })}
                />
                <Select
                  label={t("task.fold")}
                  allowDeselect={false}
                  data={choices("fold", ["first", "last", "both"])}
                  value={seen.current.overlap}
                  onChange={(fold) => set({ fold })}
                />
              </>
            )}
            <TextInput
              label={t("edit.jitter")}
              placeholder={t("edit.noJitter")}
              value={form.jitter}
              onChange={(event) => set({ jitter: event.currentTarget.value })}
            />
          </div>
        )}
        <Preview form={form} task={task} is={edit.is} />
        <Textarea
          label={t("edit.description")}
          autosize
          minRows={1}
          maxRows={5}
          value={form.description}
          onChange={(event) => set({ description: event.currentTarget.value })}
        />
        <div className={css.pair}>
          <Select
            label={t("task.overlap")}
            error={wrongAt("overlap")}
            allowDeselect={false}
            data={choices("overlap", ["allow", "queue", "skip", "replace"])}
            value={form.overlap}
            onChange={(overlap) => overlap && set({ overlap })}
          />
          {form.overlap === "queue" && (
            <NumberInput
              label={t("edit.atOnce")}
              min={1}
              value={form.atOnce}
              onChange={(value) => set({ atOnce: Number(value) || 1 })}
            />
          )}
          <Select
            label={t("task.misfire")}
            allowDeselect={false}
            data={choices("misfire", ["fire_once", "skip", "all"])}
            value={form.misfire}
            onChange={(misfire) => misfire && set({ misfire })}
          />
          <Select
            label={t("task.lost")}
            allowDeselect={false}
            data={choices("lost", ["retry", "fail", "ask"])}
            value={form.onWorkerLost}
            onChange={(lost) => lost && set({ onWorkerLost: lost })}
          />
        </div>
        <div className={css.pair}>
          <NumberInput
            label={t("edit.attempts")}
            error={wrongAt("retry")}
            min={1}
            max={100}
            value={form.attempts}
            onChange={(value) => set({ attempts: Number(value) || 1 })}
          />
          <TextInput
            label={t("task.timeout")}
            placeholder={t("task.noTimeout")}
            error={wrongAt("timeout")}
            value={form.timeout}
            onChange={(event) => set({ timeout: event.currentTarget.value })}
          />
          <NumberInput
            label={t("run.priority")}
            min={0}
            max={9}
            value={form.priority}
            onChange={(value) => set({ priority: Number(value) || 0 })}
          />
        </div>
        {form.attempts > 1 && (
          <div className={css.pair}>
            <Select
              label={t("edit.backoff")}
              allowDeselect={false}
              data={[
                { value: "fixed", label: t("edit.backoff.fixed") },
                { value: "exponential", label: t("edit.backoff.exponential") },
              ]}
              value={form.backoff}
              onChange={(backoff) => backoff && set({ backoff })}
            />
            <TextInput
              label={t("edit.delay")}
              value={form.delay}
              onChange={(event) => set({ delay: event.currentTarget.value })}
            />
            <TextInput
              label={t("edit.maxDelay")}
              value={form.maxDelay}
              onChange={(event) => set({ maxDelay: event.currentTarget.value })}
            />
          </div>
        )}
        <EditRules form={form} set={set} wrongAt={wrongAt} />
        {edit.wrong && place === "" && (
          <p className={css.windowWrong} role="alert">
            {edit.wrong.message} {edit.wrong.hint}
          </p>
        )}
        {edit.changes.length > 0 && (
          <details>
            <summary>{t("edit.changes", { n: edit.changes.length })}</summary>
            <Changes changes={edit.changes} />
          </details>
        )}
        <TextInput
          label={t("confirm.reason")}
          placeholder={t("confirm.reasonHint")}
          maxLength={1_000}
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
        />
        {present !== task.version && !save.isPending && <Meanwhile version={present} />}
        {save.error && <Trouble error={save.error} small />}
        <Group justify="flex-end" gap="sm">
          <Button variant="default" onClick={onClose}>
            {t("act.leave")}
          </Button>
          <Button
            type="submit"
            loading={save.isPending}
            disabled={edit.wrong !== undefined || edit.changes.length === 0}
          >
            {t("edit.save")}
          </Button>
        </Group>
      </form>
    </Dialog>
  );
}

/** What the schedule means, and when it fires next; or what is wrong with it. */
function Preview({ form, task, is }: { form: Form; task: Task; is: TaskDefinition | undefined }) {
  const words = useWords();
  const { t, language } = words;
  const before = ownParts(task.definition).schedule;
  const calendar = useAnswer("getCalendar", { calendar: form.calendar }, { enabled: is?.calendar !== undefined });
  const now = useNow();
  const minute = Math.floor(now / 60_000);
  const shown = useMemo(() => {
    try {
      const schedule = scheduleOf(form, before);
      const rules = is ? plannedSchedule(is, calendar.data as Calendar | undefined) : undefined;
      const compiled = rules ?? compileSchedule(schedule);
      const seen = { definition: { schedule }, schedule: compiled, seed: task.id };
      const slots: { slot: number; skipped?: string; note?: string }[] = [];
      const isDelay = schedule.type === "every" && schedule.mode === "delay";
      for (
        let slot = isDelay ? null : compiled.next(minute * 60_000);
        slot !== null && slots.length < slotsShown;
        slot = compiled.next(slot)
      )
        slots.push({ slot, ...judgedSlot(seen, slot) });
      return {
        said: scheduleWords(schedule, compileSchedule(schedule).words(), language),
        slots,
        zone: schedule.type === "cron" ? schedule.zone : words.zone,
      };
    } catch (error) {
      const { message, hint = "" } = error as Error & { hint?: string };
      return { wrong: message, hint };
    }
  }, [form, before, is, task.id, calendar.data, minute, language, words.zone]);
  if ("wrong" in shown)
    return (
      <div className={css.preview} data-wrong role="status">
        <strong>{shown.wrong}</strong>
        <div>{shown.hint}</div>
      </div>
    );
  return (
    <div className={css.preview} role="status">
      <strong>{shown.said}</strong>
      {shown.slots.length > 0 && (
        <ol className="figures">
          {shown.slots.map(({ slot, skipped, note }) => (
            <li key={slot}>
              <span data-skipped={skipped !== undefined || undefined}>{words.moment(slot, shown.zone)}</span>{" "}
              <span className="soft">{skipped ?? note ?? words.away(slot, now)}</span>
            </li>
          ))}
        </ol>
      )}
      {shown.slots.length === 0 && <div className="soft">{t("task.noSlotsTold")}</div>}
    </div>
  );
}
