import { Link } from "@tanstack/react-router";
import { useWords } from "../messages/words.ts";
import { Page } from "../parts/layout/page.tsx";
import { Nothing } from "../parts/state/notice.tsx";

export function Lost() {
  const { t } = useWords();
  return (
    <Page title={t("lost.title")}>
      <Nothing title={t("lost.lead")}>
        <Link to="/">{t("screen.overview")}</Link>
      </Nothing>
    </Page>
  );
}
