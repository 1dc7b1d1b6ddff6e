import { ActionIcon, Button, MultiSelect, Select, Switch, TagsInput, TextInput } from "@mantine/core";
import { IconPencil, IconPlus, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { type Answer, call } from "../api/call.ts";
import { useMay, useReach } from "../api/may.ts";
import { useWords, type Words } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { Card } from "../parts/layout/page.tsx";
import { Nothing, Shown } from "../parts/state/notice.tsx";
import { toastFailure } from "../parts/state/toasts.tsx";
import { Table } from "../parts/table/table.tsx";
import { plain } from "../parts/value/plain.ts";
import { ownZone } from "../preferences.ts";
import css from "./alarms.module.css";
import {
  clusterKinds,
  contentOf,
  contentOfDraft,
  type Draft,
  draftOf,
  isIncomplete,
  type Kind,
  kinds,
  type Part,
  partsOf,
  type Stored,
} from "./draft.ts";

type Asked = Parameters<typeof Shown<Answer<"listAlarmRules">>>[0]["of"];

/** Alarm rules that are stored in the database. The admins of a rule's namespaces can change them here. */
export function StoredRules({ rules }: { rules: Asked }) {
  const { t } = useWords();
  const may = useMay("admin");
  const reach = useReach("admin");
  const [edited, setEdited] = useState<Stored | "new">();
  const [removed, setRemoved] = useState<Stored>();
  return (
    <Card
      title={t("rules.own")}
      more={
        may && (
          <Button
            size="compact-sm"
            variant="default"
            leftSection={<IconPlus size={14} aria-hidden />}
            onClick={() => setEdited("new")}
          >
            {t("rules.new")}
          </Button>
        )
      }
      tight
    >
      <Shown of={rules} rows={2}>
        {(data) =>
          data.stored.length === 0 ? (
            <Nothing title={t("rules.none")}>
              <p>{t("rules.noneTold")}</p>
            </Nothing>
          ) : (
            <Table
              label={t("rules.own")}
              className={css.table}
              heads={[t("alarms.rule"), t("alarms.finds"), t("rules.of"), t("alarms.tells"), t("rules.on")]}
            >
              {data.stored.map((rule) => (
                <Row
                  key={rule.name}
                  rule={rule}
                  may={rule.scope?.everywhere ? reach.everywhere : reach.on(rule.name)}
                  onEdit={() => setEdited(rule)}
                  onRemove={() => setRemoved(rule)}
                />
              ))}
            </Table>
          )
        }
      </Shown>
      {edited && <Edit rule={edited === "new" ? null : edited} onClose={() => setEdited(undefined)} />}
      {removed && <Remove rule={removed} onClose={() => setRemoved(undefined)} />}
    </Card>
  );
}

function Row({
  rule,
  may,
  onEdit,
  onRemove,
}: {
  rule: Stored;
  may: boolean;
  onEdit: () => void;
  onRemove: () => void;
}) {
  const words = useWords();
  const { t } = words;
  const [isBusy, setBusy] = useState(false);
  const isOn = rule.enabled ?? true;
  const turn = async () => {
    setBusy(true);
    try {
      const changed = { ...contentOf(rule), enabled: !isOn };
      await call("setAlarmRule", { alarmRule: rule.name, ...changed }, { ifVersion: rule.version });
    } catch (error) {
      toastFailure(error);
    }
    setBusy(false);
    outdate("listAlarmRules", "listAlarms");
  };
  return (
    <tr data-off={!isOn || undefined}>
      <td className={css.ruleName}>
        {plain(rule.name)}
        {rule.bundle !== null && <small className="soft"> {t("rules.byFiles", { bundle: plain(rule.bundle) })}</small>}
      </td>
      <td>{findsText(rule, words)}</td>
      <td>{plain(scopeText(rule, words))}</td>
      <td>{plain(tellsText(rule, words))}</td>
      <td>
        <span className={css.acts}>
          <Switch
            size="sm"
            checked={isOn}
            disabled={!may || isBusy}
            aria-label={t("rules.turn", { rule: rule.name })}
            onChange={() => void turn()}
          />
          {may && (
            <>
              <ActionIcon variant="default" aria-label={t("rules.edit", { rule: rule.name })} onClick={onEdit}>
                <IconPencil size={16} aria-hidden />
              </ActionIcon>
              <ActionIcon variant="default" aria-label={t("rules.remove", { rule: rule.name })} onClick={onRemove}>
                <IconTrash size={16} aria-hidden />
              </ActionIcon>
            </>
          )}
        </span>
      </td>
    </tr>
  );
}

/** What the rule finds. A rule on slow or quick runs, or on queues, has a fixed limit, the usual comparison, or both. */
function findsText(rule: Stored, { t }: Pick<Words, "t">): string {
  const { kind, failures = 1, of = failures, longer, shorter, grows, times, more, by = "", zone = "" } = rule;
  const { after = kind === "snapshot" ? "10m" : "1m", within = "10m", before = "14d" } = rule;
  const fixed =
    kind === "slow" && longer !== undefined
      ? t("rules.slow.longer.finds", { longer: String(longer) })
      : kind === "quick" && shorter !== undefined
        ? t("rules.quick.shorter.finds", { shorter: String(shorter) })
        : kind === "queue" && grows !== undefined
          ? t("rules.queue.grows.finds", { grows, within: String(within) })
          : undefined;
  if (fixed !== undefined && (kind === "queue" ? more : times) === undefined) return fixed;
  const vars = {
    failures,
    of,
    times: times ?? 3,
    by,
    zone,
    after: String(after),
    more: more ?? 0,
    longer: String(longer ?? "1s"),
    before: String(before),
  };
  return [...(fixed === undefined ? [] : [fixed]), t(`rules.${kind}.finds`, vars)].join(" ");
}

function scopeText({ kind, scope = {} }: Stored, { t }: Pick<Words, "t">): string {
  if (clusterKinds.has(kind)) return t("rules.cluster");
  const { tasks = [], groups = [], owners = [], labels = {}, everywhere = false } = scope;
  const parts = [
    ...tasks,
    ...groups.map((group) => `${t("rules.group")} ${group}`),
    ...owners.map((owner) => `${t("rules.owner")} ${owner}`),
    ...Object.entries(labels).map(([label, value]) => `${label}=${value}`),
  ];
  return [
    ...(parts.length === 0 ? [t("rules.everyTask")] : parts),
    ...(everywhere ? [t("rules.everywhere")] : []),
  ].join(", ");
}

function tellsText({ channels = [], quiet, maintenance = [], escalate }: Stored, { t }: Pick<Words, "t">): string {
  return [
    channels.length === 0 ? t("rules.nobody") : channels.join(", "),
    ...(escalate
      ? [t("rules.escalates", { after: String(escalate.after), channels: escalate.channels.join(", ") })]
      : []),
    ...(quiet ? [t("rules.quietHours", { ...quiet })] : []),
    ...maintenance.map(({ from, to }) => t("rules.maintenanceAt", { from, to })),
  ].join(" · ");
}

function Edit({ rule, onClose }: { rule: Stored | null; onClose: () => void }) {
  const { t } = useWords();
  const [draft, setDraft] = useState<Draft>(() => draftOf(rule, ownZone));
  const reach = useReach("admin");
  const put = (some: Partial<Draft>) => setDraft((before) => ({ ...before, ...some }));
  const name = draft.name.trim();
  return (
    <Confirm
      title={rule ? t("rules.edit", { rule: rule.name }) : t("rules.newTitle")}
      consequence={rule?.bundle ? t("rules.toldFiles", { bundle: plain(rule.bundle) }) : t("rules.told")}
      act={t("rules.store")}
      blocked={
        isIncomplete(draft) || !(draft.everywhere || clusterKinds.has(draft.kind) ? reach.everywhere : reach.on(name))
      }
      onDo={async ({ reason, key }) => {
        const content = { ...contentOfDraft(draft, rule), reason };
        if (rule) await call("setAlarmRule", { alarmRule: rule.name, ...content }, { key, ifVersion: rule.version });
        else await call("createAlarmRule", { name, ...content }, { key });
        outdate("listAlarmRules", "listAlarms");
      }}
      onClose={onClose}
    >
      <div className={css.form}>
        {rule === null && (
          <TextInput
            data-autofocus
            label={t("rules.name")}
            description={t("rules.nameTold")}
            maxLength={100}
            value={draft.name}
            onChange={(event) => put({ name: event.currentTarget.value })}
          />
        )}
        <Select
          label={t("alarms.finds")}
          data={kinds.map((kind) => ({ value: kind, label: t(`rules.kind.${kind}`) }))}
          allowDeselect={false}
          value={draft.kind}
          onChange={(chosen) => chosen && put({ kind: chosen as Kind })}
        />
        {partsOf[draft.kind].map((part) => (
          <Threshold key={part} part={part} draft={draft} put={put} />
        ))}
        {draft.kind === "deadline" && (
          <Switch
            label={t("rules.forecast")}
            checked={draft.forecast}
            onChange={(event) => put({ forecast: event.currentTarget.checked })}
          />
        )}
        {!clusterKinds.has(draft.kind) && <ScopeFields draft={draft} put={put} everywhere={reach.everywhere} />}
        <ToldFields draft={draft} put={put} />
      </div>
    </Confirm>
  );
}

interface Fields {
  draft: Draft;
  put: (some: Partial<Draft>) => void;
}

function Threshold({ part, draft, put }: Fields & { part: Part }) {
  const { t } = useWords();
  return (
    <TextInput
      label={t(`rules.part.${part}`)}
      placeholder={part === "by" ? "06:00" : part === "after" || part === "least" ? "1m" : ""}
      value={draft.parts[part] ?? ""}
      onChange={(event) => put({ parts: { ...draft.parts, [part]: event.currentTarget.value } })}
    />
  );
}

function ScopeFields({ draft, put, everywhere }: Fields & { everywhere: boolean }) {
  const { t } = useWords();
  return (
    <>
      <TagsInput
        label={t("rules.tasks")}
        description={t("rules.tasksTold")}
        value={draft.tasks}
        onChange={(tasks) => put({ tasks })}
      />
      <TagsInput label={t("rules.groups")} value={draft.groups} onChange={(groups) => put({ groups })} />
      <TagsInput label={t("rules.owners")} value={draft.owners} onChange={(owners) => put({ owners })} />
      <TagsInput
        label={t("rules.labels")}
        placeholder="team=pay"
        value={draft.labels}
        onChange={(labels) => put({ labels })}
      />
      {everywhere && (
        <Switch
          label={t("rules.everywhere")}
          checked={draft.everywhere}
          onChange={(event) => put({ everywhere: event.currentTarget.checked })}
        />
      )}
    </>
  );
}

function ToldFields({ draft, put }: Fields) {
  const { t } = useWords();
  const channels = useAnswer("listAlarmChannels", {}, { enabled: useReach("viewer").everywhere });
  const known = (some: string[]) => [...new Set([...(channels.data?.channels ?? []).map(({ name }) => name), ...some])];
  const time = (label: string, value: string, onChange: (text: string) => void) => (
    <TextInput
      label={label}
      placeholder="22:00"
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
  return (
    <>
      <MultiSelect
        label={t("alarms.channels")}
        data={known(draft.channels)}
        value={draft.channels}
        onChange={(some) => put({ channels: some })}
      />
      {time(t("rules.quietFrom"), draft.quietFrom, (quietFrom) => put({ quietFrom }))}
      {time(t("rules.quietTo"), draft.quietTo, (quietTo) => put({ quietTo }))}
      {draft.quietFrom !== "" && (
        <TextInput
          label={t("rules.part.zone")}
          value={draft.quietZone}
          onChange={(event) => put({ quietZone: event.currentTarget.value })}
        />
      )}
      <TagsInput
        label={t("rules.maintenance")}
        description={t("rules.maintenanceTold")}
        placeholder="2027-01-31T22:00:00+08:00/2027-02-01T02:00:00+08:00"
        value={draft.maintenance}
        onChange={(maintenance) => put({ maintenance })}
      />
      <TextInput
        label={t("rules.escalateAfter")}
        placeholder="15m"
        value={draft.escalateAfter}
        onChange={(event) => put({ escalateAfter: event.currentTarget.value })}
      />
      <MultiSelect
        label={t("rules.escalateChannels")}
        data={known(draft.escalateChannels)}
        value={draft.escalateChannels}
        onChange={(some) => put({ escalateChannels: some })}
      />
    </>
  );
}

function Remove({ rule, onClose }: { rule: Stored; onClose: () => void }) {
  const { t } = useWords();
  return (
    <Confirm
      title={t("rules.remove", { rule: rule.name })}
      consequence={t("rules.removeTold")}
      act={t("rules.removeIt")}
      grave
      onDo={async ({ reason, key }) => {
        const given = { alarmRule: rule.name, ...(reason === undefined ? {} : { reason }) };
        await call("removeAlarmRule", given, { key, ifVersion: rule.version });
        outdate("listAlarmRules", "listAlarms");
      }}
      onClose={onClose}
    />
  );
}
