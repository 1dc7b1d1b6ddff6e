/** The lines that a run writes while its log is open. */
import { outdate } from "../../api/answers.ts";
import { type Event, follow, isRefusal } from "../../api/call.ts";
import { type Attempt, stand, whileSeen } from "../../live/standing.ts";
import { isShown, type LogLine, type Only } from "./levels.ts";

const gatherMs = 120;

export interface Tailing {
  run: number;
  only: Only;
  /** The `tail` cursor of a page: lines after it are new. */
  after: string;
  /** A batch of new lines, in the order of their arrival. */
  onLines: (lines: LogLine[]) => void;
  /** Called when the server refuses permanently; then the tail ends. */
  onRefused: (error: unknown) => void;
  /** Called with the error that interrupts the stream, which reopens automatically; with undefined once it is open again. */
  onBroken: (error: unknown) => void;
}

/** @returns a function that ends the tail */
export function tailLog({ run, only, onLines, onRefused, onBroken, ...from }: Tailing): () => void {
  /** The cursor of the last line that arrived, of any level. */
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

/** True if a retry would be refused too: the run does not exist, or the viewer may not read it. */
const isForGood = (error: unknown): boolean =>
  isRefusal(error) && ["RUN_UNKNOWN", "ACCESS_DENIED", "REQUEST_INVALID"].includes(error.code);
