/** Streams the lines that a run writes while its log is open. */
import { outdate } from "../../api/answers.ts";
import { type Event, follow, isRefusal } from "../../api/call.ts";
import { type Attempt, stand, whileSeen } from "../../live/standing.ts";
import { isShown, type LogLine, type Only } from "./levels.ts";

const gatherMs = 120;

export interface Tailing {
  run: number;
  only: Only;
  /** The `tail` cursor of a page of the log: the stream begins with the lines after this cursor. */
  after: string;
  /** Called with new lines that match `only`, in the order in which they arrived. */
  onLines: (lines: LogLine[]) => void;
  /** Called if the server refuses the stream permanently; the stream is then not opened again. */
  onRefused: (error: unknown) => void;
  /** Called with a `Refusal` when the stream is interrupted (it is opened again automatically); with undefined once it is open or ended. */
  onBroken: (error: unknown) => void;
}

/** @returns a function that closes the stream */
export function tailLog({ run, only, onLines, onRefused, onBroken, ...from }: Tailing): () => void {
  /** The cursor of the last line received, even if the line does not match `only`. */
  let { after } = from;
  let waiting: LogLine[] = [];
  const flush = setInterval(() => {
    if (waiting.length === 0) return;
    const added = waiting;
    waiting = [];
    onLines(added);
  }, gatherMs);
  let ended = false;
  const tell = (event: Event<"tailLogs">) => {
    if (event.type === "end") ended = true;
    else {
      after = event.after;
      if (isShown(event.line, only)) waiting.push(event.line);
    }
  };
  const open = async ({ signal, heard }: Attempt) => {
    try {
      await follow("tailLogs", { run, after }, tell, { signal, heard, opened: () => onBroken(undefined) });
    } catch (error) {
      if (!isForGood(error)) throw error;
      onRefused(error);
      ended = true;
    }
    return ended;
  };
  const broken = (error: unknown) => {
    if (isRefusal(error, "SIGN_IN_NEEDED")) outdate("getMe");
    if (isRefusal(error)) onBroken(error);
  };
  const end = whileSeen((signal) => {
    if (!ended) void stand(open, signal, broken);
  });
  return () => {
    end();
    clearInterval(flush);
    onBroken(undefined);
  };
}

/** True if a retry would be refused too: the run does not exist, the viewer may not read it, or the request is invalid. */
const isForGood = (error: unknown): boolean =>
  isRefusal(error) && ["RUN_UNKNOWN", "ACCESS_DENIED", "REQUEST_INVALID"].includes(error.code);
