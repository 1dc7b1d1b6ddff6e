import { MultiSelect, Select, TagsInput, TextInput } from "@mantine/core";
import { type Role, roles, type Scope, scopes } from "carillon/access";
import { useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { serverUrl } from "../api/base.ts";
import { type Answer, call } from "../api/call.ts";
import { highestOf } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { useNow } from "../now.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { NewButton } from "../parts/form/new-button.tsx";
import { Tag } from "../parts/state/mark.tsx";
import { Nothing } from "../parts/state/notice.tsx";
import { usePages } from "../parts/table/pages.ts";
import { Away } from "../parts/value/moment.tsx";
import { plain } from "../parts/value/plain.ts";
import { usePreferences } from "../preferences.ts";
import css from "./access.module.css";
import { Once } from "./once.tsx";
import { Revoke } from "./revoke.tsx";
import { Rows } from "./rows.tsx";

type Token = Answer<"listTokens">["items"][number];
type Made = Answer<"createToken">;

const spans = ["7d", "30d", "90d", "366d"] as const;

export function Tokens() {
  const { t } = useWords();
  const now = useNow();
  const may = !usePreferences().readOnly;
  const me = useAnswer("getMe", {});
  const tokens = usePages("listTokens", { limit: 100 });
  const [isNew, setNew] = useState(false);
  const [made, setMade] = useState<Made>();
  return (
    <>
      <Rows
        of={tokens}
        told={t("access.tokensTold")}
        keyOf={({ user, name, created }) => `${user}/${name}/${created}`}
        isEnded={({ revoked, expires }) => revoked !== null || Date.parse(expires) <= now}
        none={
          <Nothing title={t("access.noTokens")}>
            <p>{t("access.noTokensTold")}</p>
            <code>{"Authorization: Bearer ct_…"}</code>
          </Nothing>
        }
        act={may && <NewButton onClick={() => setNew(true)}>{t("access.newToken")}</NewButton>}
      >
        {(token) => <One token={token} may={may} now={now} />}
      </Rows>
      {isNew && me.data && <NewToken own={highestOf(me.data)} onMade={setMade} onClose={() => setNew(false)} />}
      {made && (
        <Once
          title={t("access.tokenMade", { token: made.name })}
          secret={made.secret}
          how={`curl -H "Authorization: Bearer ${made.secret.slice(0, 8)}…" ${serverUrl}/v1/tasks`}
          onClose={() => setMade(undefined)}
        />
      )}
    </>
  );
}

function One({ token, may, now }: { token: Token; may: boolean; now: number }) {
  const { t } = useWords();
  const { name, user, role, scopes: narrowed, namespaces, created, expires, revoked } = token;
  const isOver = revoked !== null || Date.parse(expires) <= now;
  return (
    <div className={css.row} data-off={isOver || undefined}>
      <div className={css.who}>
        <b>{plain(name)}</b>
        <small>
          {t("access.madeBy", { by: plain(user) })} <Away at={created} past />
        </small>
      </div>
      <div className={css.tags}>
        <Tag tone={role === "admin" ? "late" : "run"}>{t(`role.${role}`)}</Tag>
        {narrowed?.map((scope) => (
          <Tag key={scope} tone="wait">
            {scope}
          </Tag>
        ))}
        {namespaces?.map((namespace) => (
          <Tag key={namespace} tone="skip">
            {namespace}
          </Tag>
        ))}
      </div>
      <div className={css.state}>
        {revoked !== null ? (
          <Tag tone="bad">{t("access.revoked")}</Tag>
        ) : isOver ? (
          <Tag tone="wait">{t("access.expired")}</Tag>
        ) : (
          <small>
            {t("access.expires")} <Away at={expires} />
          </small>
        )}
      </div>
      <Revoke
        name={name}
        isOffered={may && !isOver}
        consequence={t("access.revokeTokenTold")}
        onDo={async ({ reason, key }) => {
          await call("revokeToken", { token: name, user, reason }, { key });
          outdate("listTokens");
        }}
      />
    </div>
  );
}

function NewToken({ own, onMade, onClose }: { own: Role; onMade: (made: Made) => void; onClose: () => void }) {
  const { t } = useWords();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [narrowed, setNarrowed] = useState<Scope[]>([]);
  const [namespaces, setNamespaces] = useState<string[]>([]);
  const [expiresIn, setExpiresIn] = useState<string>("90d");
  return (
    <Confirm
      title={t("access.newToken")}
      consequence={t("access.newTokenTold")}
      act={t("access.make")}
      blocked={name.trim() === ""}
      onDo={async ({ reason, key }) => {
        const made = await call(
          "createToken",
          {
            name: name.trim(),
            role,
            expiresIn,
            reason,
            ...(narrowed.length > 0 ? { scopes: narrowed } : {}),
            ...(namespaces.length > 0 ? { namespaces } : {}),
          },
          { key },
        );
        outdate("listTokens");
        onMade(made);
      }}
      onClose={onClose}
    >
      <div className={css.form}>
        <TextInput
          data-autofocus
          label={t("signIn.name")}
          placeholder="ci"
          maxLength={100}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <div className={css.pair}>
          <Select
            label={t("settings.role")}
            description={t(`role.${role}.may`)}
            data={roles.slice(0, roles.indexOf(own) + 1).map((value) => ({ value, label: t(`role.${value}`) }))}
            allowDeselect={false}
            value={role}
            onChange={(chosen) => chosen && setRole(chosen as Role)}
          />
          <Select
            label={t("access.expires")}
            description={t("access.expiresTold")}
            data={spans.map((value) => ({ value, label: t(`access.in.${value}`) }))}
            allowDeselect={false}
            value={expiresIn}
            onChange={(chosen) => chosen && setExpiresIn(chosen)}
          />
        </div>
        <MultiSelect
          label={t("access.scopes")}
          description={t("access.scopesTold")}
          data={scopes}
          searchable
          value={narrowed}
          onChange={(chosen) => setNarrowed(chosen as Scope[])}
          clearable
          clearButtonProps={{ "aria-label": t("filter.clear") }}
        />
        <TagsInput
          label={t("access.namespaces")}
          description={t("access.namespacesTold")}
          value={namespaces}
          onChange={setNamespaces}
          clearable
          clearButtonProps={{ "aria-label": t("filter.clear") }}
        />
      </div>
    </Confirm>
  );
}
