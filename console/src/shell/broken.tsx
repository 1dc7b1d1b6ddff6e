import { useWords } from "../messages/words.ts";
import { Trouble } from "../parts/notice.tsx";
import { Page } from "../parts/page.tsx";

/** A bug of the console's own: the rest of it stays usable. */
export function Broken({ error, reset }: { error: unknown; reset: () => void }) {
  const { t } = useWords();
  return (
    <Page title={t("broken.title")}>
      <Trouble error={error} again={reset} />
    </Page>
  );
}
