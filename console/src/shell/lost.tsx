import { Link } from "@tanstack/react-router";
import { useWords } from "../messages/words.ts";
import { Nothing } from "../parts/notice.tsx";
import { Page } from "../parts/page.tsx";

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
