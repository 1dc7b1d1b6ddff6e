/** A dialog to confirm an act: states the consequence and, unless `asksReason` is false, asks for a reason for the audit log. */
import { Button, Group, Textarea } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { isUnsure } from "../../api/call.ts";
import { newKey } from "../../api/keys.ts";
import { useWords } from "../../messages/words.ts";
import { Dialog } from "../layout/dialog.tsx";
import { Trouble } from "../state/notice.tsx";
import { toast } from "../state/toasts.tsx";
import css from "./confirm.module.css";

export interface Doing {
  /** The reason for the audit; undefined if the user gave none. */
  reason: string | undefined;
  /** The dialog's idempotency key. A second attempt sends the same key, so that the server does not repeat the act. */
  key: string;
  /** Aborts when the dialog is closed; the caller of `Confirm` must then begin no further step and not navigate to the result. */
  signal: AbortSignal;
}

export function Confirm({
  title,
  consequence,
  act,
  grave = false,
  asksReason = true,
  blocked = false,
  size,
  children,
  onDo,
  onClose,
  onDone = onClose,
}: {
  title: string;
  consequence: ReactNode;
  /** The button's label. */
  act: string;
  grave?: boolean;
  asksReason?: boolean;
  /** True disables the button, for example while required input is missing. */
  blocked?: boolean;
  /** The dialog's width in pixels. */
  size?: number;
  children?: ReactNode;
  onDo: (doing: Doing) => Promise<unknown>;
  onClose: () => void;
  /** Called once the act is done; default: `onClose`. */
  onDone?: () => void;
}) {
  const { t } = useWords();
  const [reason, setReason] = useState("");
  const [key] = useState(newKey);
  /**
   * Sends the same request again with the same key; set once the server may have carried out the request despite an error. The
   * fields are disabled then, because a different request must not use that key.
   */
  const [unsure, setUnsure] = useState<(signal: AbortSignal) => Promise<unknown>>();
  const under = useRef<AbortController>(undefined);
  const doing = useMutation({
    mutationFn: async (signal: AbortSignal) => {
      const given = { reason: reason.trim() === "" ? undefined : reason.trim(), key };
      const send = unsure ?? ((until: AbortSignal) => onDo({ ...given, signal: until }));
      try {
        await send(signal);
      } catch (error) {
        if (isUnsure(error)) setUnsure(() => send);
        throw error;
      }
    },
    onSuccess: (_, signal) => {
      if (!signal.aborted) onDone();
    },
    onError: (error, signal) => {
      if (signal.aborted) toast({ failed: true, text: `${title} ${error.message}` });
    },
  });
  const leave = () => {
    under.current?.abort();
    onClose();
  };
  useEffect(() => () => under.current?.abort(), []);
  // A request that the server may have carried out can be sent again even if its own effects set `blocked`.
  const isBlocked = blocked && unsure === undefined;
  return (
    <Dialog onClose={leave} title={title} {...(size === undefined ? {} : { size })}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (isBlocked || doing.isPending) return;
          under.current = new AbortController();
          doing.mutate(under.current.signal);
        }}
      >
        <div className="soft">{consequence}</div>
        <fieldset className={css.fields} disabled={unsure !== undefined}>
          {children}
          {asksReason && (
            <Textarea
              mt="md"
              label={t("confirm.reason")}
              placeholder={t("confirm.reasonHint")}
              maxLength={1_000}
              autosize
              minRows={2}
              data-autofocus
              value={reason}
              onChange={(event) => setReason(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key === "Enter" && (event.ctrlKey || event.metaKey))
                  event.currentTarget.form?.requestSubmit();
              }}
            />
          )}
        </fieldset>
        {doing.error && (
          <div className={css.trouble}>
            <Trouble error={doing.error} small />
            {unsure && <p className="soft">{t("confirm.unsure")}</p>}
          </div>
        )}
        <Group className={css.foot ?? ""} justify="flex-end" gap="sm">
          <Button variant="default" onClick={leave}>
            {t("act.leave")}
          </Button>
          <Button type="submit" loading={doing.isPending} disabled={isBlocked} {...(grave ? { color: "red.9" } : {})}>
            {act}
          </Button>
        </Group>
      </form>
    </Dialog>
  );
}
