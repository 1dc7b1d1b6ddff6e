import { outdate } from "../api/answers.ts";
import { call } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { usePages } from "../parts/table/pages.ts";
import { SignInRows } from "../settings/sign-in-rows.tsx";
import type { User } from "./user.ts";

/** A user's sign-ins; an admin can end one of them, or all. */
export function UserSignIns({ user: { name }, onClose }: { user: User; onClose: () => void }) {
  const { t } = useWords();
  const signIns = usePages("listSignInsOf", { user: name, limit: 50 });
  return (
    <Confirm
      title={t("access.signInsOf", { user: name })}
      consequence={t("access.signInsTold")}
      act={t("access.endSignIns")}
      onDo={async ({ reason, key }) => {
        const { ended } = await call("endSignInsOf", { user: name, reason }, { key });
        outdate("listSignInsOf");
        toast({ text: t("access.signInsEnded", { n: ended, user: name }) });
      }}
      onClose={onClose}
    >
      <SignInRows of={signIns} list="listSignInsOf" end={(signIn) => call("endSignInOf", { user: name, signIn })} />
    </Confirm>
  );
}
