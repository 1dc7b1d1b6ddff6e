/** Downloads a run's log as a text file: all lines, or only those of the selected level and attempt. */
import { call } from "../../api/call.ts";
import { askedOf, type Only } from "./levels.ts";
import { lineText } from "./text.ts";

const pageSize = 1_000;

/** Reads all matching lines page by page, then starts the browser's download. @param onRead called with the number of lines read */
export async function downloadLog(
  run: number,
  only: Only,
  { onRead, signal }: { onRead: (lines: number) => void; signal: AbortSignal },
): Promise<void> {
  const texts: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const given = { run, limit: pageSize, ...askedOf(only), ...(cursor === undefined ? {} : { cursor }) };
    const { items, next } = await call("listLogs", given, { signal });
    texts.push(...items.map(lineText));
    onRead(texts.length);
    if (next === null) break;
    cursor = next;
  }
  const url = URL.createObjectURL(new Blob(texts, { type: "text/plain" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `run-${run}${only.attempt === undefined ? "" : `-attempt-${only.attempt}`}.log`;
  link.click();
  // The URL is revoked after 10 s, when the browser has started the download.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
