import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { outdate } from "../api/answers.ts";
import { call } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Trouble } from "../parts/state/notice.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { usePages } from "../parts/table/pages.ts";
import { SignInRows } from "./sign-in-rows.tsx";

/** The browsers in which the user is signed in; each sign-in can be ended here. A page that uses a token has none of its own. */
export function SignIns() {
  const signIns = usePages("listSignIns", { limit: 50 });
  return (
    <>
      <SignInRows of={signIns} list="listSignIns" end={(signIn) => call("endSignIn", { signIn })} keepsOwn />
      {signIns.data?.some(({ present }) => !present) && <EndOthers />}
    </>
  );
}

function EndOthers() {
  const { t } = useWords();
  const end = useMutation({
    mutationFn: () => call("endOtherSignIns", {}),
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
