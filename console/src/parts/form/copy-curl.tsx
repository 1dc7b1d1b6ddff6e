import { ActionIcon, CopyButton } from "@mantine/core";
import { IconCheck, IconTerminal2 } from "@tabler/icons-react";
import { curlOf, type Given, type PlainId } from "../../api/call.ts";
import { useWords } from "../../messages/words.ts";

/** A button that copies the command which reads from the API what the screen shows. */
export function CopyCurl<Id extends PlainId>({ id, given }: { id: Id; given: Given<Id> }) {
  const { t } = useWords();
  return (
    <CopyButton value={curlOf(id, given)}>
      {({ copied, copy }) => (
        <ActionIcon
          variant="default"
          size={36}
          aria-label={t(copied ? "act.copied" : "act.curl")}
          title={t("act.curl")}
          onClick={copy}
        >
          {copied ? <IconCheck size={17} color="var(--c-ok)" aria-hidden /> : <IconTerminal2 size={17} aria-hidden />}
        </ActionIcon>
      )}
    </CopyButton>
  );
}
