import { Button } from "@mantine/core";
import { IconArrowUp } from "@tabler/icons-react";
import { useWords } from "../../messages/words.ts";

/** A button with the number of rows that a held list does not show yet; pressing the button shows these rows. */
export function News({ n, onTake }: { n: number; onTake: () => void }) {
  const { t } = useWords();
  return (
    <span role="status">
      {n > 0 && (
        <Button size="compact-xs" radius="xl" leftSection={<IconArrowUp size={13} aria-hidden />} onClick={onTake}>
          {t("list.news", { n })}
        </Button>
      )}
    </span>
  );
}
