import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { outdate } from "../api/answers.ts";
import { call, isRefusal } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Trouble } from "../parts/state/notice.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { usePages } from "../parts/table/pages.ts";
import { Again } from "./again.tsx";
import { SignInRows } from "./sign-in-rows.tsx";

/**
 * The browsers in which the user is signed in. Every sign-in except this browser's own can be ended. A page that authenticates with a
 * token has no sign-in of its own.
 */
export function SignIns() {
  const signIns = usePages("listSignIns", { limit: 50 });
  const [refused, setRefused] = useState<() => Promise<unknown>>();
  /** If this browser's sign-in is too old for the act, the user signs in again, and then the act is repeated. */
  const end = async <Ended,>(act: () => Promise<Ended>): Promise<Ended> => {
    try {
      return await act();
    } catch (error) {
      if (isRefusal(error, "SIGN_IN_OLD")) setRefused(() => act);
      throw error;
    }
  };
  return (
    <>
      <SignInRows of={signIns} list="listSignIns" end={(signIn) => end(() => call("endSignIn", { signIn }))} keepsOwn />
      {signIns.data?.some(({ present }) => !present) && (
        <EndOthers onEnd={() => end(() => call("endOtherSignIns", {}))} />
      )}
      {refused && <Again act={refused} onClose={() => setRefused(undefined)} />}
    </>
  );
}

function EndOthers({ onEnd }: { onEnd: () => Promise<{ ended: number }> }) {
  const { t } = useWords();
  const end = useMutation({
    mutationFn: onEnd,
    onSuccess: ({ ended }) => toast({ text: t("settings.othersEnded", { n: ended }) }),
    onSettled: () => outdate("listSignIns"),
  });
  return (
    <>
      {end.error && <Trouble error={end.error} small />}
      <Button variant="default" loading={end.isPending} onClick={() => end.mutate()}>
        {t("settings.endOthers")}
      </Button>
    </>
  );
}
