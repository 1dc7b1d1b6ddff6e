import { Button, SegmentedControl, TagsInput, Textarea, TextInput } from "@mantine/core";
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

type Secret = Answer<"listSecrets">["items"][number];

const tasksShown = 3;

/** Lists secrets without their values: a value can be replaced and handed to runs, but not read. */
export function Secrets() {
  const { t } = useWords();
  const may = useReach("admin").everywhere;
  const secrets = usePages("listSecrets", { limit: 100 });
  const [isNew, setNew] = useState(false);
  return (
    <>
      <Rows
        of={secrets}
        told={t("access.secretsTold")}
        keyOf={({ name }) => name}
        none={
          <Nothing title={t("access.noSecrets")}>
            <p>{t("access.noSecretsTold")}</p>
            <code>{'await run.secret("bank-token")'}</code>
          </Nothing>
        }
        act={may && <NewButton onClick={() => setNew(true)}>{t("access.newSecret")}</NewButton>}
      >
        {(secret) => <One secret={secret} may={may} />}
      </Rows>
      {isNew && <SetSecret onClose={() => setNew(false)} />}
    </>
  );
}

function One({ secret, may }: { secret: Secret; may: boolean }) {
  const { t } = useWords();
  const [act, setAct] = useState<"set" | "remove">();
  const { name, version, author, changed, tasks, reason } = secret;
  const close = () => setAct(undefined);
  return (
    <div className={css.row}>
      <div className={css.who}>
        <b className="mono">{name}</b>
        <small>
          {t("access.setBy", { by: plain(author) })} <Away at={changed} past />
          {reason !== "" && ` · ${plain(reason)}`}
        </small>
      </div>
      <div className={css.tags}>
        {tasks === null ? (
          <Tag tone="late">{t("access.anyTask")}</Tag>
        ) : (
          <>
            {tasks.slice(0, tasksShown).map((task) => (
              <Tag key={task} tone="wait">
                {plain(task)}
              </Tag>
            ))}
            {tasks.length > tasksShown && (
              <span className="soft">{t("bulk.andMore", { n: tasks.length - tasksShown })}</span>
            )}
          </>
        )}
      </div>
      <small className={css.state}>{t("access.version", { version: String(version) })}</small>
      {may && (
        <span className={css.acts}>
          <Button
            size="compact-sm"
            variant="default"
            aria-label={t("access.replaceOf", { what: name })}
            onClick={() => setAct("set")}
          >
            {t("access.replace")}
          </Button>
          <Button
            size="compact-sm"
            variant="default"
            aria-label={t("access.removeOf", { what: name })}
            onClick={() => setAct("remove")}
          >
            {t("access.remove")}
          </Button>
        </span>
      )}
      {act === "set" && <SetSecret secret={secret} onClose={close} />}
      {act === "remove" && (
        <Confirm
          title={t("access.removeOf", { what: name })}
          consequence={t("access.removeSecretTold")}
          act={t("access.remove")}
          grave
          onDo={async ({ reason: why, key }) => {
            await call("removeSecret", { secret: name, reason: why }, { key });
            outdate("listSecrets");
            toast({ text: t("access.removedDone", { what: name }) });
          }}
          onClose={close}
        />
      )}
    </div>
  );
}

function SetSecret({ secret, onClose }: { secret?: Secret; onClose: () => void }) {
  const { t } = useWords();
  const [name, setName] = useState(secret?.name ?? "");
  const [value, setValue] = useState("");
  const [whose, setWhose] = useState<"any" | "named">(secret?.tasks === null ? "any" : "named");
  const [tasks, setTasks] = useState<string[]>(secret?.tasks ?? []);
  return (
    <Confirm
      title={secret ? t("access.replaceOf", { what: secret.name }) : t("access.newSecret")}
      consequence={t(secret ? "access.replaceTold" : "access.newSecretTold")}
      act={t("access.store")}
      blocked={name.trim() === "" || value.length < 8 || (whose === "named" && tasks.length === 0)}
      onDo={async ({ reason, key }) => {
        const given = { secret: name.trim(), value, tasks: whose === "any" ? null : tasks, reason };
        const { version } = await call("setSecret", given, { key });
        outdate("listSecrets");
        toast({ text: t("access.secretDone", { secret: name.trim(), version: String(version) }) });
      }}
      onClose={onClose}
    >
      <div className={css.form}>
        {!secret && (
          <TextInput
            data-autofocus
            label={t("signIn.name")}
            placeholder="bank-token"
            maxLength={100}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
        )}
        <Textarea
          label={t("access.value")}
          description={t("access.valueTold")}
          autosize
          minRows={2}
          maxRows={8}
          autoComplete="off"
          spellCheck={false}
          styles={{ input: { fontFamily: "var(--mono)" } }}
          value={value}
          onChange={(event) => setValue(event.currentTarget.value)}
        />
        <SegmentedControl
          aria-label={t("access.whose")}
          value={whose}
          onChange={(chosen) => setWhose(chosen as "any" | "named")}
          data={(["named", "any"] as const).map((one) => ({ value: one, label: t(`access.whose.${one}`) }))}
        />
        {whose === "named" && (
          <TagsInput
            label={t("screen.tasks")}
            description={t("access.tasksTold")}
            maxTags={1_000}
            value={tasks}
            onChange={setTasks}
          />
        )}
      </div>
    </Confirm>
  );
}
