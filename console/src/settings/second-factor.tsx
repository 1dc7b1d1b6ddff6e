import { Button, Checkbox, CopyButton, PasswordInput, TextInput } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { lazy, type ReactNode, Suspense, useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { type Answer, call } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Shown, Trouble } from "../parts/state/notice.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { Away } from "../parts/value/moment.tsx";
import css from "./second-factor.module.css";

// The QR encoder is loaded only when a code is shown.
const Qr = lazy(() => import("./qr.tsx").then(({ Qr }) => ({ default: Qr })));

type Begun = Answer<"beginSecondFactor">;

/** The user's own second factor: its state, adding it, removing it. */
export function SecondFactor() {
  const { t } = useWords();
  const state = useAnswer("getSecondFactor", {});
  const [act, setAct] = useState<"add" | "remove">();
  const leave = () => {
    setAct(undefined);
    outdate("getSecondFactor", "listSignIns", "getMe");
  };
  // While `act` is set, answers of the server do not replace this form, so that the recovery codes stay visible until they are saved.
  if (act === "add") return <AddFactor onDone={leave} onLeave={leave} />;
  if (act === "remove") return <RemoveFactor onDone={leave} />;
  return (
    <Shown of={state} rows={2}>
      {({ enrolled, recoveryCodes }) =>
        enrolled === null ? (
          <div className={css.form}>
            <p className="soft">{t("factor.none")}</p>
            <Button variant="default" onClick={() => setAct("add")}>
              {t("factor.add")}
            </Button>
          </div>
        ) : (
          <div className={css.form}>
            <p className="soft">
              {t("factor.since")} <Away at={enrolled} past />
            </p>
            <p>{t("factor.left", { n: recoveryCodes })}</p>
            <Button variant="default" onClick={() => setAct("remove")}>
              {t("factor.remove")}
            </Button>
          </div>
        )
      }
    </Shown>
  );
}

/**
 * The form for adding a second factor, in three steps: the password; the key with a code made from it; the recovery codes, which are
 * shown once.
 * @param onAdded called when the second factor is active and the recovery codes are shown
 * @param onDone called when the user confirms that the recovery codes are saved
 */
export function AddFactor({
  onAdded,
  onDone,
  onLeave,
}: {
  onAdded?: () => void;
  onDone: () => void;
  onLeave?: () => void;
}) {
  const [begun, setBegun] = useState<Begun>();
  const [codes, setCodes] = useState<string[]>();
  if (codes) return <RecoveryCodes codes={codes} onDone={onDone} />;
  if (begun)
    return (
      <ShowCode
        begun={begun}
        onLeave={onLeave}
        onAdded={(made) => {
          setCodes(made);
          onAdded?.();
        }}
      />
    );
  return <Begin onBegun={setBegun} onLeave={onLeave} />;
}

type Leave = { onLeave: (() => void) | undefined };

function Begin({ onBegun, onLeave }: { onBegun: (begun: Begun) => void } & Leave) {
  const { t } = useWords();
  const [password, setPassword] = useState("");
  const begin = useMutation({
    mutationFn: () => call("beginSecondFactor", { password }),
    onSuccess: onBegun,
    onError: () => setPassword(""),
  });
  return (
    <Form act={t("factor.begin")} blocked={password === ""} doing={begin} onLeave={onLeave}>
      <OwnPassword value={password} onChange={setPassword} />
    </Form>
  );
}

function ShowCode({ begun, onAdded, onLeave }: { begun: Begun; onAdded: (codes: string[]) => void } & Leave) {
  const { t } = useWords();
  const [code, setCode] = useState("");
  const confirm = useMutation({
    mutationFn: () => call("confirmSecondFactor", { code: code.trim() }),
    onSuccess: ({ recoveryCodes }) => onAdded(recoveryCodes),
    onError: () => setCode(""),
  });
  return (
    <Form act={t("factor.confirm")} blocked={code.trim() === ""} doing={confirm} onLeave={onLeave}>
      <p>{t("factor.scan")}</p>
      <Suspense fallback={<div className={css.qr} />}>
        <Qr text={begun.uri} label={t("factor.qr")} />
      </Suspense>
      <div>
        <span className={css.label}>{t("factor.key")}</span>
        <code className={css.key} data-secret>
          {begun.secret.replace(/.{4}(?=.)/g, "$& ")}
        </code>
      </div>
      <CodeInput label={t("factor.code")} told={t("factor.codeTold")} value={code} onChange={setCode} />
      <p className="soft">{t("factor.onTold")}</p>
    </Form>
  );
}

function RecoveryCodes({ codes, onDone }: { codes: string[]; onDone: () => void }) {
  const { t } = useWords();
  const [isKept, setKept] = useState(false);
  return (
    <div className={css.form}>
      <b>{t("factor.codes")}</b>
      <p>{t("factor.codesTold")}</p>
      <ul className={css.codes} data-secret>
        {codes.map((code) => (
          <li key={code}>{code}</li>
        ))}
      </ul>
      <CopyButton value={codes.join("\n")}>
        {({ copied, copy }) => (
          <Button
            variant="default"
            leftSection={copied ? <IconCheck size={17} aria-hidden /> : <IconCopy size={17} aria-hidden />}
            onClick={copy}
          >
            {t(copied ? "act.copied" : "act.copy")}
          </Button>
        )}
      </CopyButton>
      <Checkbox label={t("factor.kept")} checked={isKept} onChange={(event) => setKept(event.currentTarget.checked)} />
      <Button disabled={!isKept} onClick={onDone}>
        {t("factor.done")}
      </Button>
    </div>
  );
}

function RemoveFactor({ onDone }: { onDone: () => void }) {
  const { t } = useWords();
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const remove = useMutation({
    mutationFn: () => call("removeSecondFactor", { password, code: code.trim() }),
    onSuccess: () => {
      toast({ text: t("factor.removed") });
      onDone();
    },
    onError: () => setCode(""),
  });
  return (
    <Form act={t("factor.remove")} blocked={password === "" || code.trim() === ""} doing={remove} onLeave={onDone}>
      <p className="soft">{t("factor.removeTold")}</p>
      <OwnPassword value={password} onChange={setPassword} />
      <CodeInput label={t("factor.anyCode")} value={code} onChange={setCode} />
    </Form>
  );
}

interface Doing {
  error: unknown;
  isPending: boolean;
  mutate: () => void;
}

/** @param onLeave absent if the user cannot skip the form */
function Form({
  act,
  blocked,
  doing,
  onLeave,
  children,
}: { act: string; blocked: boolean; doing: Doing; children: ReactNode } & Leave) {
  const { t } = useWords();
  return (
    <form
      className={css.form}
      onSubmit={(event) => {
        event.preventDefault();
        doing.mutate();
      }}
    >
      {children}
      {doing.error != null && <Trouble error={doing.error} small />}
      <div className={css.acts}>
        <Button type="submit" variant="default" loading={doing.isPending} disabled={blocked}>
          {act}
        </Button>
        {onLeave && (
          <Button variant="subtle" onClick={onLeave}>
            {t("act.leave")}
          </Button>
        )}
      </div>
    </form>
  );
}

interface Field {
  value: string;
  onChange: (value: string) => void;
}

export function OwnPassword({ value, onChange }: Field) {
  const { t } = useWords();
  return (
    <PasswordInput
      label={t("settings.presentPassword")}
      autoComplete="current-password"
      autoFocus
      required
      withAsterisk={false}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      visibilityToggleButtonProps={{ "aria-label": t("signIn.show") }}
    />
  );
}

/** The field for a code. A recovery code contains letters too, so the field accepts more than digits. */
export function CodeInput({
  label,
  told,
  focused = false,
  value,
  onChange,
}: Field & { label: string; told?: string; focused?: boolean }) {
  return (
    <TextInput
      label={label}
      description={told}
      name="code"
      autoComplete="one-time-code"
      autoCapitalize="off"
      spellCheck={false}
      maxLength={100}
      autoFocus={focused}
      required
      withAsterisk={false}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}
