import { Button } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { useEffect, useRef, useState } from "react";
import { useWords } from "../../messages/words.ts";
import { toastFailure } from "../../parts/state/toasts.tsx";
import { downloadLog } from "./download.ts";
import type { Only } from "./levels.ts";

/** A button that downloads all lines of the selected level and attempt; pressing it again cancels the download. */
export function DownloadButton({ run, only }: { run: number; only: Only }) {
  const { t, count } = useWords();
  const [read, setRead] = useState<number>();
  const under = useRef<AbortController>(undefined);
  useEffect(() => () => under.current?.abort(), []);
  const start = async () => {
    const control = new AbortController();
    under.current = control;
    setRead(0);
    try {
      await downloadLog(run, only, { onRead: setRead, signal: control.signal });
    } catch (error) {
      if (!control.signal.aborted) toastFailure(error);
    }
    setRead(undefined);
  };
  return (
    <Button
      variant="default"
      px={10}
      leftSection={<IconDownload size={15} aria-hidden />}
      onClick={() => (read === undefined ? void start() : under.current?.abort())}
    >
      {read === undefined ? t("log.download") : t("log.reading", { lines: count(read) })}
    </Button>
  );
}
