import { Button } from "@mantine/core";
import { useState } from "react";
import { useWords } from "../messages/words.ts";
import { Confirm, type Doing } from "../parts/form/confirm.tsx";
import { toast } from "../parts/state/toasts.tsx";
import css from "./access.module.css";

/** Revokes a token or a worker key: the button in its row, and the confirmation. */
export function Revoke({
  name,
  isOffered,
  consequence,
  onDo,
}: {
  name: string;
  /** Whether the button is shown. An open dialog stays open even if this becomes false meanwhile. */
  isOffered: boolean;
  consequence: string;
  onDo: (doing: Doing) => Promise<void>;
}) {
  const { t } = useWords();
  const [isAsked, setAsked] = useState(false);
  const title = t("access.revokeOf", { what: name });
  return (
    <>
      {isOffered && (
        <span className={css.acts}>
          <Button size="compact-sm" variant="default" aria-label={title} onClick={() => setAsked(true)}>
            {t("access.revoke")}
          </Button>
        </span>
      )}
      {isAsked && (
        <Confirm
          title={title}
          consequence={consequence}
          act={t("access.revoke")}
          grave
          onDo={async (doing) => {
            await onDo(doing);
            toast({ text: t("access.revokedDone", { what: name }) });
          }}
          onClose={() => setAsked(false)}
        />
      )}
    </>
  );
}
