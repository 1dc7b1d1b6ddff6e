import { Select, TagsInput, TextInput } from "@mantine/core";
import { useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { serverUrl } from "../api/base.ts";
import { type Answer, call } from "../api/call.ts";
import { useMay, useReach } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { NewButton } from "../parts/form/new-button.tsx";
import { Tag } from "../parts/state/mark.tsx";
import { Nothing } from "../parts/state/notice.tsx";
import { usePages } from "../parts/table/pages.ts";
import { Away } from "../parts/value/moment.tsx";
import { plain } from "../parts/value/plain.ts";
import css from "./access.module.css";
import { Once } from "./once.tsx";
import { Revoke } from "./revoke.tsx";
import { Rows } from "./rows.tsx";

const spans = ["never", "30d", "90d", "366d"] as const;

type Key = Answer<"listWorkerKeys">["items"][number];
type Made = Answer<"createWorkerKey">;

export function WorkerKeys() {
  const { t } = useWords();
  const may = useMay("admin");
  const reach = useReach("admin");
  const keys = usePages("listWorkerKeys", { limit: 100 });
  const [isNew, setNew] = useState(false);
  const [made, setMade] = useState<Made>();
  return (
    <>
      <Rows
        of={keys}
        told={t("access.keysTold")}
        keyOf={({ name, created }) => `${name}/${created}`}
        isEnded={({ revoked }) => revoked !== null}
        none={
          <Nothing title={t("access.noKeys")}>
            <p>{t("access.noKeysTold")}</p>
            <code>carillon worker --server {serverUrl} tasks.ts</code>
          </Nothing>
        }
        act={may && <NewButton onClick={() => setNew(true)}>{t("access.newKey")}</NewButton>}
      >
        {(key) => <One worker={key} may={reach.on(key.name)} />}
      </Rows>
      {isNew && <NewKey onMade={setMade} onClose={() => setNew(false)} />}
      {made && (
        <Once
          title={t("access.keyMade", { key: made.name })}
          secret={made.secret}
          how={`CARILLON_WORKER_KEY=${made.secret.slice(0, 8)}… carillon worker --server ${serverUrl} tasks.ts`}
          onClose={() => setMade(undefined)}
        />
      )}
    </>
  );
}

function One({ worker, may }: { worker: Key; may: boolean }) {
  const { t } = useWords();
  const { name, groups, created, by, expires, revoked } = worker;
  return (
    <div className={css.row} data-off={revoked !== null || undefined}>
      <div className={css.who}>
        <b>{plain(name)}</b>
        <small>
          {t("access.madeBy", { by: plain(by) })} <Away at={created} past />
        </small>
      </div>
      <div className={css.tags}>
        {groups.map((group) => (
          <Tag key={group} tone="wait">
            {group}
          </Tag>
        ))}
      </div>
      <div className={css.state}>
        {revoked !== null ? (
          <Tag tone="bad">{t("access.revoked")}</Tag>
        ) : (
          expires !== null && (
            <small>
              {t("access.expires")} <Away at={expires} />
            </small>
          )
        )}
      </div>
      <Revoke
        name={name}
        isOffered={may && revoked === null}
        consequence={t("access.revokeKeyTold")}
        onDo={async ({ reason, key }) => {
          await call("revokeWorkerKey", { key: name, reason }, { key });
          outdate("listWorkerKeys", "listWorkers");
        }}
      />
    </div>
  );
}

function NewKey({ onMade, onClose }: { onMade: (made: Made) => void; onClose: () => void }) {
  const { t } = useWords();
  const [name, setName] = useState("");
  const [groups, setGroups] = useState<string[]>(["default"]);
  const [expiresIn, setExpiresIn] = useState<(typeof spans)[number]>("never");
  const known = useAnswer("listGroups", { limit: 200 });
  return (
    <Confirm
      title={t("access.newKey")}
      consequence={t("access.newKeyTold")}
      act={t("access.make")}
      blocked={name.trim() === "" || groups.length === 0}
      onDo={async ({ reason, key }) => {
        const made = await call(
          "createWorkerKey",
          { name: name.trim(), groups, reason, ...(expiresIn === "never" ? {} : { expiresIn }) },
          { key },
        );
        outdate("listWorkerKeys");
        onMade(made);
      }}
      onClose={onClose}
    >
      <div className={css.form}>
        <TextInput
          data-autofocus
          label={t("signIn.name")}
          placeholder="warehouse-7"
          maxLength={100}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <TagsInput
          label={t("workers.groups")}
          description={t("access.groupsTold")}
          data={known.data?.items.map((group) => group.name) ?? []}
          value={groups}
          onChange={setGroups}
        />
        <Select
          label={t("access.expires")}
          description={t("access.expiresTold")}
          data={spans.map((value) => ({ value, label: t(`access.in.${value}`) }))}
          allowDeselect={false}
          value={expiresIn}
          onChange={(chosen) => chosen && setExpiresIn(chosen as (typeof spans)[number])}
        />
      </div>
    </Confirm>
  );
}
