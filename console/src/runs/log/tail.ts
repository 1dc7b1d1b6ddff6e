/** The lines that a run writes while its log is open. */
import { outdate } from "../../api/answers.ts";
import { type Event, follow, isRefusal } from "../../api/call.ts";
import { type Attempt, stand, whileSeen } from "../../live/standing.ts";
import { type Level, type LogLine, levels } from "./levels.ts";

const gatherMs = 120;

export interface Tailing {
  run: number;
  least: Level;
  /** The last line that is there already; undefined: none. */
  after: string | undefined;
  /** A batch of new lines. A line may come twice: a stream that reopens repeats lines of the same instant. */
  onLines: (lines: LogLine[]) => void;
  /** The server refused for good, and the tail ends. */
  onRefused: (error: unknown) => void;
  /** Why the stream is interrupted, while it reopens by itself; undefined once it is open again. */
  onBroken: (error: unknown) => void;
}

/** @returns a function that ends the tail */
export function tailLog({ run, least, onLines, onRefused, onBroken, ...from }: Tailing): () => void {
  /** The last line that arrived, of whatever level. */
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
      after = event.line.id;
      if (levels.indexOf(event.line.level) >= levels.indexOf(least)) waiting.push(event.line);
    }
  };
  const open = async ({ signal, heard }: Attempt) => {
    const place = after === undefined ? {} : { after };
    try {
      await follow("tailLogs", { run, ...place }, tell, { signal, heard, opened: () => onBroken(undefined) });
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
