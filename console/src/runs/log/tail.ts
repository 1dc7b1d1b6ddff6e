/** The lines that a run writes while its log is open. */
import { outdate } from "../../api/answers.ts";
import { type Event, follow, isRefusal } from "../../api/call.ts";
import { type Attempt, stand, whileSeen } from "../../live/standing.ts";
import { type Level, type LogLine, levels } from "./levels.ts";

const gatherMs = 120;

export interface Tailing {
  run: number;
  least: Level;
  /** `tail` of the page after which the lines are new. */
  after: string;
  /** A batch of new lines, in the order of their arrival. */
  onLines: (lines: LogLine[]) => void;
  /** The server refused for good, and the tail ends. */
  onRefused: (error: unknown) => void;
  /** Why the stream is interrupted, while it reopens by itself; undefined once it is open again. */
  onBroken: (error: unknown) => void;
}

/** @returns a function that ends the tail */
export function tailLog({ run, least, onLines, onRefused, onBroken, ...from }: Tailing): () => void {
  /** The place of the last line that arrived, of whatever level. */
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
      if (levels.indexOf(event.line.level) >= levels.indexOf(least)) waiting.push(event.line);
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

/** Another try would be refused too: the run does not exist, or the viewer may not read it. */
const isForGood = (error: unknown): boolean =>
  isRefusal(error) && ["RUN_UNKNOWN", "ACCESS_DENIED", "REQUEST_INVALID"].includes(error.code);
