import { Button, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { outdate } from "../api/answers.ts";
import { type Answer, call } from "../api/call.ts";
import { useReach } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { NewButton } from "../parts/form/new-button.tsx";
import { Tag } from "../parts/state/mark.tsx";
import { Nothing } from "../parts/state/notice.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { usePages } from "../parts/table/pages.ts";
import { Away } from "../parts/value/moment.tsx";
import { plain } from "../parts/value/plain.ts";
import css from "./access.module.css";
import { Rows } from "./rows.tsx";

type Quota = Answer<"listQuotas">["items"][number];

/** The quotas that each kind of subject can have. */
const limitsOf = {
  namespace: ["enqueues", "waiting", "bytes", "history"],
  user: ["enqueues", "streams"],
  key: ["enqueues", "sessions"],
} as const;
type Kind = keyof typeof limitsOf;
type Limit = (typeof limitsOf)[Kind][number];
const kinds = Object.keys(limitsOf) as Kind[];

const seenEveryMs = 5_000;

/** The quotas of namespaces, users and worker keys, with their current use. */
export function Quotas() {
  const { t } = useWords();
  const may = useReach("admin").everywhere;
  const quotas = usePages("listQuotas", { limit: 100 }, { everyMs: seenEveryMs });
  const [isNew, setNew] = useState(false);
  return (
    <>
      <Rows
        of={quotas}
        told={t("quotas.told")}
        keyOf={({ kind, name }) => `${kind} ${name}`}
        none={
          <Nothing title={t("quotas.none")}>
            <p>{t("quotas.noneTold")}</p>
          </Nothing>
        }
        act={may && <NewButton onClick={() => setNew(true)}>{t("quotas.new")}</NewButton>}
      >
        {(quota) => <One quota={quota} may={may} />}
      </Rows>
      {isNew && <SetQuota onClose={() => setNew(false)} />}
    </>
  );
}

function One({ quota, may }: { quota: Quota; may: boolean }) {
  const { t } = useWords();
  const [isSet, setSet] = useState(false);
  const { kind, name, used, changed } = quota;
  return (
    <div className={css.row}>
      <div className={css.who}>
        <b>
          {t(`quotas.kind.${kind}`)} {name === "*" ? t("quotas.every") : plain(name)}
        </b>
        <small>
          {t("access.setBy", { by: plain(changed.by) })} <Away at={changed.at} past />
          {changed.why !== "" && ` · ${plain(changed.why)}`}
        </small>
      </div>
      <div className={css.tags}>
        {limitsOf[kind].map((limit) => {
          const most = quota[limit];
          const taken = used?.[limit] ?? null;
          return (
            most !== null && (
              <Tag key={limit} tone={taken !== null && taken >= most ? "bad" : "wait"}>
                {t(`quotas.${limit}`)} {taken === null ? most : t("quotas.of", { used: taken, most })}
              </Tag>
            )
          );
        })}
      </div>
      <span />
      {may && (
        <span className={css.acts}>
          <Button
            size="compact-sm"
            variant="default"
            aria-label={t("access.changeOf", { what: `${kind} ${name}` })}
            onClick={() => setSet(true)}
          >
            {t("access.change")}
          </Button>
        </span>
      )}
      {isSet && <SetQuota quota={quota} onClose={() => setSet(false)} />}
    </div>
  );
}

function SetQuota({ quota, onClose }: { quota?: Quota; onClose: () => void }) {
  const { t } = useWords();
  const [kind, setKind] = useState<Kind>(quota?.kind ?? "namespace");
  const [name, setName] = useState(quota?.name ?? "");
  const [texts, setTexts] = useState<Partial<Record<Limit, string>>>(() =>
    Object.fromEntries(limitsOf[kind].map((limit) => [limit, quota?.[limit]?.toString() ?? ""])),
  );
  const given = limitsOf[kind].map((limit) => [limit, (texts[limit] ?? "").trim()] as const);
  return (
    <Confirm
      title={quota ? t("access.changeOf", { what: `${kind} ${name}` }) : t("quotas.new")}
      consequence={t("quotas.setTold")}
      act={t("access.store")}
      blocked={name.trim() === "" || given.some(([, text]) => !/^\d*$/.test(text))}
      onDo={async ({ reason, key }) => {
        const limits = Object.fromEntries(given.map(([limit, text]) => [limit, text === "" ? null : Number(text)]));
        await call("setQuota", { kind, name: name.trim(), ...limits, reason }, { key });
        outdate("listQuotas");
        toast({ text: t("access.changedDone", { what: `${kind} ${name.trim()}` }) });
      }}
      onClose={onClose}
    >
      <div className={css.form}>
        {!quota && (
          <div className={css.pair}>
            <Select
              label={t("quotas.kind")}
              data={kinds.map((value) => ({ value, label: t(`quotas.kind.${value}`) }))}
              allowDeselect={false}
              value={kind}
              onChange={(chosen) => chosen && setKind(chosen as Kind)}
            />
            <TextInput
              data-autofocus
              label={t("signIn.name")}
              description={t("quotas.nameTold")}
              maxLength={100}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
            />
          </div>
        )}
        {limitsOf[kind].map((limit) => (
          <TextInput
            key={limit}
            label={t(`quotas.${limit}`)}
            inputMode="numeric"
            maxLength={13}
            value={texts[limit] ?? ""}
            onChange={(event) => {
              const text = event.currentTarget.value;
              setTexts((before) => ({ ...before, [limit]: text }));
            }}
          />
        ))}
      </div>
    </Confirm>
  );
}
