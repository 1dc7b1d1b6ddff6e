import { useWords } from "../messages/words.ts";
import { Page } from "../parts/layout/page.tsx";
import { TaskFlow } from "./task-flow.tsx";

/** The screen that shows which tasks run after which other tasks. */
export function FlowScreen() {
  const { t } = useWords();
  return (
    <Page title={t("screen.flow")} below={t("flow.below")}>
      <TaskFlow />
    </Page>
  );
}
