import { SegmentedControl, Textarea } from "@mantine/core";
import { useState } from "react";
import { useWords } from "../../messages/words.ts";
import { Trouble, Waiting } from "../../parts/state/notice.tsx";
import type { Task } from "../answers.ts";
import { type Payload, textOf } from "./payload.ts";
import { PayloadForm } from "./payload-form.tsx";
import { PayloadSources } from "./payload-sources.tsx";

/** Edits a payload as a form or as JSON; without a schema only as JSON. */
export function PayloadField({ task, payload }: { task: Task; payload: Payload }) {
  const { t } = useWords();
  const { schema, isReady, refusal, text, json, issues, change } = payload;
  const [as, setAs] = useState<"form" | "json">(schema ? "form" : "json");
  return (
    <>
      <PayloadSources task={task} payload={payload} />
      {refusal && <Trouble error={refusal} small />}
      {schema && (
        <SegmentedControl
          aria-label={t("run.payload")}
          value={as}
          onChange={(value) => setAs(value === "json" ? "json" : "form")}
          data={[
            { value: "form", label: t("payload.form") },
            { value: "json", label: "JSON" },
          ]}
        />
      )}
      {!isReady ? (
        <Waiting rows={3} />
      ) : schema && as === "form" && json ? (
        <PayloadForm schema={schema} value={json.value} issues={issues} onChange={(value) => change(textOf(value))} />
      ) : (
        <Textarea
          label={t("run.payload")}
          description={t("runNow.json")}
          autosize
          minRows={4}
          maxRows={14}
          spellCheck={false}
          styles={{ input: { fontFamily: "var(--mono)", fontSize: 13 } }}
          value={text}
          error={json === undefined ? t("runNow.noJson") : undefined}
          onChange={(event) => change(event.currentTarget.value)}
        />
      )}
    </>
  );
}
