import { ActionIcon, Button, CopyButton, Select, TextInput } from "@mantine/core";
import { IconCheck, IconCopy, IconDice5, IconPlus, IconX } from "@tabler/icons-react";
import { type Role, roles } from "carillon/access";
import { useState } from "react";
import { outdate } from "../api/answers.ts";
import { call } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { Meanwhile } from "../parts/value/versions.tsx";
import css from "./access.module.css";
import type { User } from "./user.ts";

type Grant = { namespace: string; role: Role };

/** A random password of 20 characters, without characters that look alike: more than 110 bits of entropy. */
function passwordOfChance(): string {
  const letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
  // Bytes from this value on are dropped, because they would make some letters likelier than others.
  const most = 256 - (256 % letters.length);
  let made = "";
  while (made.length < 20)
    for (const byte of crypto.getRandomValues(new Uint8Array(32)))
      if (byte < most && made.length < 20) made += letters[byte % letters.length];
  return made;
}

export function NewUser({ onClose }: { onClose: () => void }) {
  const { t } = useWords();
  const [name, setName] = useState("");
  const [password, setPassword] = useState(passwordOfChance);
  const [role, setRole] = useState<Role | null>("viewer");
  const [grants, setGrants] = useState<Grant[]>([]);
  return (
    <Confirm
      title={t("access.newUser")}
      consequence={t("access.newUserTold")}
      act={t("access.make")}
      blocked={name.trim() === "" || password === "" || (role === null && grants.length === 0)}
      onDo={async ({ reason, key }) => {
        await call("createUser", { name: name.trim(), password, temporary: true, role, grants, reason }, { key });
        outdate("listUsers");
        toast({ text: t("access.madeDone", { what: name.trim() }) });
      }}
      onClose={onClose}
    >
      <div className={css.form}>
        <TextInput
          data-autofocus
          label={t("signIn.name")}
          maxLength={100}
          autoComplete="off"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <Password value={password} onChange={setPassword} />
        <Rights role={role} grants={grants} onRole={setRole} onGrants={setGrants} />
      </div>
    </Confirm>
  );
}

export function ChangeUser({ user: present, onClose }: { user: User; onClose: () => void }) {
  const { t } = useWords();
  /** The user as of the opening of the form, so that saving does not silently undo later changes by another admin. */
  const [user] = useState(present);
  const before = user.grants.filter(({ namespace }) => namespace !== "*");
  const [role, setRole] = useState<Role | null>(user.role);
  const [grants, setGrants] = useState<Grant[]>(before);
  const isSame = role === user.role && JSON.stringify(grants) === JSON.stringify(before);
  const set = async (
    asked: { role: Role | null; grants: Grant[]; reason: string | undefined },
    from: { ifVersion: number; key?: string },
  ) => {
    const made = await call("changeUser", { user: user.name, ...asked }, from);
    outdate("listUsers", "getMe");
    return made.version;
  };
  return (
    <Confirm
      title={t("access.changeOf", { what: user.name })}
      consequence={t(user.provided ? "access.changeProvidedTold" : "access.changeTold")}
      act={t("access.change")}
      blocked={isSame || (role === null && grants.length === 0)}
      onDo={async ({ reason, key }) => {
        const ifVersion = await set({ role, grants, reason }, { ifVersion: user.version, key });
        toast({
          text: t("access.changedDone", { what: user.name }),
          undo: () => set({ role: user.role, grants: before, reason: t("act.undo") }, { ifVersion }),
        });
      }}
      onClose={onClose}
    >
      {present.version !== user.version && <Meanwhile version={present.version} />}
      <div className={css.form}>
        <Rights role={role} grants={grants} onRole={setRole} onGrants={setGrants} />
      </div>
    </Confirm>
  );
}

export function SetPassword({ user, onClose }: { user: User; onClose: () => void }) {
  const { t } = useWords();
  const [password, setPassword] = useState(passwordOfChance);
  return (
    <Confirm
      title={t("access.setPasswordTitle", { user: user.name })}
      consequence={t("access.setPasswordTold")}
      act={t("access.setPassword")}
      blocked={password === ""}
      onDo={async ({ reason, key }) => {
        await call("changeUser", { user: user.name, password, temporary: true, reason }, { key });
        toast({ text: t("settings.passwordDone") });
      }}
      onClose={onClose}
    >
      <div className={css.form}>
        <Password value={password} onChange={setPassword} />
      </div>
    </Confirm>
  );
}

/** The generated password, shown so that the admin can copy it and hand it on. */
function Password({ value, onChange }: { value: string; onChange: (password: string) => void }) {
  const { t } = useWords();
  return (
    <div className={css.password}>
      <TextInput
        label={t("signIn.password")}
        description={t("access.passwordTold")}
        maxLength={200}
        autoComplete="off"
        spellCheck={false}
        styles={{ input: { fontFamily: "var(--mono)" } }}
        value={value}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
      <ActionIcon
        variant="default"
        size={36}
        aria-label={t("access.draw")}
        title={t("access.draw")}
        onClick={() => onChange(passwordOfChance())}
      >
        <IconDice5 size={18} aria-hidden />
      </ActionIcon>
      <CopyButton value={value}>
        {({ copied, copy }) => (
          <ActionIcon variant="default" size={36} aria-label={t(copied ? "act.copied" : "act.copy")} onClick={copy}>
            {copied ? <IconCheck size={18} aria-hidden /> : <IconCopy size={18} aria-hidden />}
          </ActionIcon>
        )}
      </CopyButton>
    </div>
  );
}

const nowhere = "nowhere";

function Rights({
  role,
  grants,
  onRole,
  onGrants,
}: {
  role: Role | null;
  grants: Grant[];
  onRole: (role: Role | null) => void;
  onGrants: (grants: Grant[]) => void;
}) {
  const { t } = useWords();
  const [namespace, setNamespace] = useState("");
  const choices = roles.map((value) => ({ value, label: t(`role.${value}`) }));
  const wanted = namespace.trim();
  const isTaken = wanted === "" || grants.some((grant) => grant.namespace === wanted);
  return (
    <>
      <Select
        label={t("access.roleEverywhere")}
        description={role === null ? t("access.nowhereTold") : t(`role.${role}.may`)}
        data={[...choices, { value: nowhere, label: t("access.onlyIn") }]}
        allowDeselect={false}
        value={role ?? nowhere}
        onChange={(chosen) => chosen && onRole(chosen === nowhere ? null : (chosen as Role))}
      />
      <fieldset className={css.grants}>
        <legend>{t("access.grants")}</legend>
        <p className="soft">{t("access.grantsTold")}</p>
        {grants.map((grant, at) => (
          <div key={grant.namespace} className={css.grant}>
            <code className="cut">{grant.namespace}</code>
            <Select
              aria-label={t("access.roleIn", { namespace: grant.namespace })}
              data={choices}
              allowDeselect={false}
              value={grant.role}
              onChange={(chosen) =>
                chosen && onGrants(grants.map((one, i) => (i === at ? { ...one, role: chosen as Role } : one)))
              }
            />
            <ActionIcon
              variant="subtle"
              color="gray"
              size={36}
              aria-label={t("access.dropGrant", { namespace: grant.namespace })}
              onClick={() => onGrants(grants.filter((_, i) => i !== at))}
            >
              <IconX size={17} aria-hidden />
            </ActionIcon>
          </div>
        ))}
        <div className={css.grant}>
          <TextInput
            aria-label={t("access.namespace")}
            placeholder={t("access.namespace")}
            maxLength={100}
            value={namespace}
            onChange={(event) => setNamespace(event.currentTarget.value)}
          />
          <Button
            variant="default"
            leftSection={<IconPlus size={16} aria-hidden />}
            disabled={isTaken}
            onClick={() => {
              onGrants([...grants, { namespace: wanted, role: "viewer" }]);
              setNamespace("");
            }}
          >
            {t("access.addGrant")}
          </Button>
        </div>
      </fieldset>
    </>
  );
}
