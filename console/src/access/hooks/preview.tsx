import { Button, Group, Textarea } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../api/call.ts";
import { useWords } from "../../messages/words.ts";
import { Dialog } from "../../parts/layout/dialog.tsx";
import { Trouble } from "../../parts/state/notice.tsx";
import css from "../access.module.css";

const isHeader = (line: string) => /^[^:\s]+:/.test(line);
const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return false;
  }
};

/** Shows which run a request would enqueue; enqueues nothing. */
export function Preview({ hook, onClose }: { hook: string; onClose: () => void }) {
  const { t } = useWords();
  const [headers, setHeaders] = useState("");
  const [body, setBody] = useState("{}");
  const lines = headers.split("\n").filter((line) => line.trim() !== "");
  const trying = useMutation({
    mutationFn: () => {
      const given = lines.map((line) => [
        line.slice(0, line.indexOf(":")).trim(),
        line.slice(line.indexOf(":") + 1).trim(),
      ]);
      return call("previewHook", { hook, headers: Object.fromEntries(given), body: JSON.parse(body) });
    },
  });
  const area = (label: string, value: string, onChange: (text: string) => void) => (
    <Textarea
      label={label}
      autosize
      minRows={2}
      maxRows={10}
      spellCheck={false}
      styles={{ input: { fontFamily: "var(--mono)" } }}
      value={value}
      onChange={(event) => {
        onChange(event.currentTarget.value);
        trying.reset();
      }}
    />
  );
  return (
    <Dialog title={`${t("hooks.try")}: ${hook}`} size={620} onClose={onClose}>
      <p className="soft">{t("hooks.tryTold")}</p>
      <div className={css.form}>
        {area(t("hooks.headers"), headers, setHeaders)}
        {area(t("hooks.body"), body, setBody)}
      </div>
      {trying.error && <Trouble error={trying.error} />}
      {trying.data && (
        <pre className={css.how} aria-live="polite">
          {trying.data.run === null ? t("hooks.ignored") : JSON.stringify(trying.data.run, null, 2)}
        </pre>
      )}
      <Group justify="flex-end" mt="lg" gap="sm">
        <Button
          loading={trying.isPending}
          disabled={!isJson(body) || !lines.every(isHeader)}
          onClick={() => trying.mutate()}
        >
          {t("hooks.try")}
        </Button>
      </Group>
    </Dialog>
  );
}
