import { Button, CopyButton, Group } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import { useWords } from "../messages/words.ts";
import { Dialog } from "../parts/layout/dialog.tsx";
import css from "./access.module.css";

/** Shows the secret of a new token or worker key, or the new secret of an incoming webhook. It is shown once: no copy is kept. */
export function Once({
  title,
  secret,
  how,
  onClose,
}: {
  title: string;
  secret: string;
  /** Instructions for using the secret. */
  how: string;
  onClose: () => void;
}) {
  const { t } = useWords();
  return (
    <Dialog title={title} size={620} onClose={onClose}>
      <p className={css.warn}>{t("access.once")}</p>
      <code className={css.secret} data-secret>
        {secret}
      </code>
      <p className="soft">{t("access.how")}</p>
      <pre className={css.how}>{how}</pre>
      <Group justify="flex-end" mt="lg" gap="sm">
        <CopyButton value={secret}>
          {({ copied, copy }) => (
            <Button
              data-autofocus
              leftSection={copied ? <IconCheck size={17} aria-hidden /> : <IconCopy size={17} aria-hidden />}
              onClick={copy}
            >
              {t(copied ? "act.copied" : "act.copy")}
            </Button>
          )}
        </CopyButton>
        <Button variant="default" onClick={onClose}>
          {t("access.haveIt")}
        </Button>
      </Group>
    </Dialog>
  );
}
