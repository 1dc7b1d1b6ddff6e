import { useState } from "react";
import { answers, outdate, useAnswer } from "../api/answers.ts";
import { call, isRefusal } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { ProviderLink } from "../sign-in/sign-in.tsx";
import { CodeInput, OwnPassword } from "./second-factor.tsx";
import css from "./settings.module.css";

/** Asks the user to sign in again for an act that needs a recent sign-in; then repeats the act. */
export function Again({ act, onClose }: { act: () => Promise<unknown>; onClose: () => void }) {
  const { t } = useWords();
  const me = useAnswer("getMe", {}).data;
  const provider = useAnswer("howToSignIn", {}).data?.provider;
  const [password, setPassword] = useState("");
  /** undefined until the server asks for a code. */
  const [code, setCode] = useState<string>();
  const isProvided = me?.provided === true;
  return (
    <Confirm
      title={t("settings.again")}
      consequence={t("settings.againTold")}
      act={t("settings.againAct")}
      asksReason={false}
      blocked={isProvided || password === "" || code?.trim() === ""}
      onDo={async () => {
        try {
          const signedIn = await call("signIn", { name: me?.user ?? "", password, code: code?.trim() });
          answers.setQueryData(["getMe", {}], signedIn);
        } catch (error) {
          if (["SECOND_FACTOR_NEEDED", "CODE_REFUSED"].some((one) => isRefusal(error, one))) setCode("");
          throw error;
        }
        await act();
        outdate("listSignIns");
      }}
      onClose={onClose}
    >
      <div className={css.form}>
        {isProvided ? (
          provider && <ProviderLink {...provider} />
        ) : (
          <OwnPassword value={password} onChange={setPassword} />
        )}
        {code !== undefined && (
          <CodeInput label={t("signIn.code")} told={t("signIn.codeHint")} focused value={code} onChange={setCode} />
        )}
      </div>
    </Confirm>
  );
}
