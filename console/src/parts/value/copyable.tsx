import { ActionIcon, CopyButton } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import { useWords } from "../../messages/words.ts";
import css from "./copyable.module.css";

/** A command or a piece of code, with a button that copies it. @param label names what is copied, for screen readers */
export function Copyable({ text, label }: { text: string; label: string }) {
  const { t } = useWords();
  return (
    <div className={css.copyable}>
      <pre className={css.text}>{text}</pre>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <ActionIcon
            variant="subtle"
            color="gray"
            onClick={copy}
            aria-label={copied ? t("act.copied") : t("act.copyOf", { what: label })}
          >
            {copied ? (
              <IconCheck size={16} color="var(--c-ok)" aria-hidden />
            ) : (
              <IconCopy size={16} color="var(--c-soft)" aria-hidden />
            )}
          </ActionIcon>
        )}
      </CopyButton>
    </div>
  );
}
