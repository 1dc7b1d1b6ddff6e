import { Button } from "@mantine/core";
import { useWords } from "../../messages/words.ts";
import css from "./more.module.css";

/** The button for more rows below a list. @param tight true at the bottom of a compact card */
export function More({ of: { more, onMore }, tight }: { of: { more: boolean; onMore: () => void }; tight?: boolean }) {
  const { t } = useWords();
  if (!more) return null;
  return (
    <div className={tight ? css.more : undefined}>
      <Button size={tight ? "compact-sm" : "sm"} variant="default" onClick={onMore}>
        {t("list.more")}
      </Button>
    </div>
  );
}
