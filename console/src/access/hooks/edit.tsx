import { Select, TagsInput, TextInput } from "@mantine/core";
import { useState } from "react";
import { outdate } from "../../api/answers.ts";
import { call } from "../../api/call.ts";
import { useReach } from "../../api/may.ts";
import { useWords } from "../../messages/words.ts";
import { Confirm } from "../../parts/form/confirm.tsx";
import { plain } from "../../parts/value/plain.ts";
import css from "../access.module.css";
import { contentOfDraft, type Draft, draftOf, type Hook, isIncomplete } from "./draft.ts";

const schemes: Hook["scheme"][] = ["github", "stripe", "standard", "bearer"];
const texts = ["secret", "task", "by", "payload", "key", "delay"] as const;
const examples: Partial<Record<(typeof texts)[number], string>> = {
  by: "header:x-github-event",
  payload: '{ "commit": "/after" }',
  key: "/id",
  delay: "5m",
};

export function EditHook({ hook, onClose }: { hook: Hook | null; onClose: () => void }) {
  const { t } = useWords();
  const [draft, setDraft] = useState<Draft>(() => draftOf(hook));
  const reach = useReach("admin");
  const put = (some: Partial<Draft>) => setDraft((before) => ({ ...before, ...some }));
  const name = draft.name.trim();
  return (
    <Confirm
      title={hook ? `${t("hooks.edit")}: ${hook.name}` : t("hooks.new")}
      consequence={hook?.bundle ? t("hooks.toldFiles", { bundle: plain(hook.bundle) }) : t("hooks.editTold")}
      act={t("access.store")}
      blocked={isIncomplete(draft) || !reach.on(name)}
      onDo={async ({ reason, key }) => {
        const given = { hook: name, ...contentOfDraft(draft, hook), reason };
        await call("setHook", given, { key, ifVersion: hook?.version ?? 0 });
        outdate("listHooks");
      }}
      onClose={onClose}
    >
      <div className={css.form}>
        {hook === null && (
          <TextInput
            data-autofocus
            label={t("signIn.name")}
            description={t("hooks.nameTold")}
            maxLength={100}
            value={draft.name}
            onChange={(event) => put({ name: event.currentTarget.value })}
          />
        )}
        <Select
          label={t("hooks.scheme")}
          data={schemes}
          allowDeselect={false}
          value={draft.scheme}
          onChange={(chosen) => chosen && put({ scheme: chosen as Hook["scheme"] })}
        />
        {texts.map((part) => (
          <TextInput
            key={part}
            label={t(`hooks.part.${part}`)}
            placeholder={examples[part] ?? ""}
            disabled={part === "task" && draft.by.trim() !== ""}
            value={draft[part]}
            onChange={(event) => put({ [part]: event.currentTarget.value })}
          />
        ))}
        {draft.by.trim() !== "" && (
          <TagsInput label={t("hooks.of")} placeholder="push=deploy" value={draft.of} onChange={(of) => put({ of })} />
        )}
      </div>
    </Confirm>
  );
}
