/** Before something is done that others notice: what comes of it, and why it is done, for the audit. */
import { Button, Group, Textarea } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { newKey } from "../api/keys.ts";
import { useWords } from "../messages/words.ts";
import { Dialog } from "./dialog.tsx";
import { Trouble } from "./notice.tsx";

export interface Doing {
  /** Empty where none was given. */
  reason: string | undefined;
  /** Of this intention: another try does not do it twice. */
  key: string;
}

export function Confirm({
  title,
  consequence,
  act,
  grave = false,
  asksReason = true,
  blocked = false,
  children,
  onDo,
  onClose,
  onDone = onClose,
}: {
  title: string;
  consequence: ReactNode;
  /** What the button says. */
  act: string;
  grave?: boolean;
  asksReason?: boolean;
  /** Not yet: something is missing. */
  blocked?: boolean;
  children?: ReactNode;
  onDo: (doing: Doing) => Promise<unknown>;
  onClose: () => void;
  /** Once it is done; default: as when it is left. */
  onDone?: () => void;
}) {
  const { t } = useWords();
  const [reason, setReason] = useState("");
  const [key] = useState(newKey);
  const doing = useMutation({
    mutationFn: () => onDo({ reason: reason.trim() === "" ? undefined : reason.trim(), key }),
    onSuccess: onDone,
  });
  return (
    <Dialog onClose={onClose} title={title}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!blocked) doing.mutate();
        }}
      >
        <div className="soft">{consequence}</div>
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
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit();
            }}
          />
        )}
        {doing.error && (
          <div style={{ marginTop: 12 }}>
            <Trouble error={doing.error} small />
          </div>
        )}
        <Group justify="flex-end" mt="lg" gap="sm">
          <Button variant="default" onClick={onClose}>
            {t("act.leave")}
          </Button>
          <Button type="submit" loading={doing.isPending} disabled={blocked} {...(grave ? { color: "red.9" } : {})}>
            {act}
          </Button>
        </Group>
      </form>
    </Dialog>
  );
}
