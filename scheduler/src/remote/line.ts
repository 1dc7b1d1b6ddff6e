import * as http from "node:http";
import * as https from "node:https";
import { gzip } from "node:zlib";
import type { PollAnswer, PollRequest } from "../api/worker-protocol.ts";
import type { Clock } from "../base/clock.ts";
import { CarillonError, type ErrorCode, errorCodes, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { problemWords } from "../run/problem-words.ts";
import { tracesHeader } from "../store/trace-context.ts";
import { textOf } from "./unpack.ts";

export interface LineOptions {
  /** The base URLs of servers that share one store. A server is used until it stops responding; then the next one is used. */
  servers: readonly string[];
  key: string;
  clock: Clock;
  log: Log;
  /** The time in ms that a server has to respond to a poll, in addition to the poll's waiting time. */
  answerMs: number;
  /** True if this process uses tracing. Servers then send the trace contexts of its runs. */
  traces?: boolean;
}

export interface Answered {
  answer: PollAnswer;
  beganMono: number;
  endedMono: number;
}

/**
 * Returns the earliest moment, by this process's monotonic clock, at which the server can have written the response: the time of sending
 * plus the processing time that the server reports. The reported time is limited to the time that passed in this process.
 */
export function writtenMono({ answer, beganMono, endedMono }: Answered): number {
  return beganMono + Math.min(Math.max(0, answer.tookMs), endedMono - beganMono);
}

/** Requests shorter than this number of bytes are not compressed, because compression would cost more than it saves. */
const packFromBytes = 1_024;
const answerBytesMax = 640 * 1024 * 1024;
const path = "v1/worker/poll";

interface Server {
  url: URL;
  agent: http.Agent;
  /** True if long requests and all responses may be compressed; false if the server's address is a loopback address. */
  packs: boolean;
}

/** Sends polls to one of the servers over HTTP. After a failure, the next poll goes to the next server. */
export class Line {
  readonly #options: LineOptions;
  readonly #servers: Server[];
  #at = 0;
  #down = false;

  constructor(options: LineOptions) {
    this.#options = options;
    this.#servers = options.servers.map((server) => {
      const url = new URL(path, server.endsWith("/") ? server : `${server}/`);
      const agent = new (url.protocol === "https:" ? https : http).Agent({ keepAlive: true });
      return { url, agent, packs: !/^(?:localhost|127\.|\[::1\])/.test(url.hostname) };
    });
  }

  /**
   * Sends a poll.
   * @throws SERVER_UNREACHABLE if there is no response, or a response that another server or a later attempt may not give; STOPPED if the
   * signal aborts; otherwise the server's error
   */
  async post(body: PollRequest, signal?: AbortSignal): Promise<Answered> {
    const at = this.#at;
    const server = this.#servers[at] as Server;
    const { clock, log } = this.#options;
    const beganMono = clock.monotonic();
    try {
      const { status, text } = await this.#send(server, body, signal);
      const endedMono = clock.monotonic();
      if (status !== 200) throw refusal(status, text);
      const answer = checked(JSON.parse(text));
      if (this.#down) log.info({ server: server.url.origin }, "a server answers again");
      this.#down = false;
      return { answer, beganMono, endedMono };
    } catch (error) {
      if (error instanceof CarillonError && error.code !== "SERVER_UNREACHABLE") throw error;
      if (signal?.aborted) throw new CarillonError("STOPPED", "the poll was given up", { cause: error });
      // Another failed poll may already have switched to the next server.
      if (this.#at === at) this.#at = (at + 1) % this.#servers.length;
      const fields = { server: server.url.origin, error: messageOf(error) };
      if (this.#down) log.debug(fields, "a server does not answer");
      else log.warn(fields, "a server does not answer; going on with the next, and trying again until one does");
      this.#down = true;
      throw new CarillonError("SERVER_UNREACHABLE", `${server.url.origin} cannot be reached: ${messageOf(error)}`, {
        cause: error,
        hint: "Check the servers' URLs, and that carillon server was started with --listen.",
      });
    }
  }

  close(): void {
    for (const { agent } of this.#servers) agent.destroy();
  }

  async #send(
    { url, agent, packs }: Server,
    body: PollRequest,
    signal: AbortSignal | undefined,
  ): Promise<{ status: number; text: string }> {
    const { key, clock, answerMs, traces } = this.#options;
    const plain = Buffer.from(JSON.stringify(body));
    const packed = packs && plain.length >= packFromBytes ? await pack(plain) : undefined;
    return new Promise((resolve, reject) => {
      const request = (url.protocol === "https:" ? https : http).request(url, {
        method: "POST",
        agent,
        ...(signal ? { signal } : {}),
        headers: {
          authorization: `Bearer ${key}`,
          "content-type": "application/json",
          "content-length": (packed ?? plain).length,
          ...(packed ? { "content-encoding": "gzip" } : {}),
          ...(traces ? { [tracesHeader]: "1" } : {}),
          ...(packs ? { "accept-encoding": "gzip" } : {}),
        },
      });
      const waitMs = (body.waitMs ?? 0) + answerMs;
      const cancel = clock.after(waitMs, () => request.destroy(new Error(`no answer within ${waitMs} ms`)));
      const fail = (error: Error) => {
        cancel();
        reject(error);
      };
      request.on("error", fail);
      request.on("response", (response) => {
        textOf(response, answerBytesMax).then((text) => {
          cancel();
          resolve({ status: response.statusCode ?? 0, text });
        }, fail);
      });
      request.end(packed ?? plain);
    });
  }
}

/**
 * Validates only the outline of a response, to recognise that a proxy or another service has responded. Validating every field would cost
 * more than the poll itself.
 */
function checked(value: unknown): PollAnswer {
  const answer = (typeof value === "object" && value !== null ? value : {}) as PollAnswer;
  const { session, nowMs, tookMs, sureForMs, runs, tasks, recalls, refused, lost, spawned, inputs } = answer;
  const isWhole =
    [session, nowMs, tookMs, sureForMs].every((number) => Number.isFinite(number)) &&
    [runs, recalls, refused].every((list) => Array.isArray(list) && list.every(isClaim)) &&
    runs.every(isRun) &&
    Array.isArray(tasks) &&
    tasks.every((task) => Number.isInteger((task as { taskId?: unknown } | null)?.taskId)) &&
    Array.isArray(lost) &&
    (spawned === undefined || (Array.isArray(spawned) && spawned.every(isClaim))) &&
    (inputs === undefined || (isClaim(inputs) && Array.isArray(inputs.inputs)));
  if (!isWhole) throw new Error("its answer is not what the contract says");
  return answer;
}

const isClaim = (given: unknown): boolean => {
  const { runId, fence } = (given ?? {}) as { runId?: unknown; fence?: unknown };
  return Number.isInteger(runId) && Number.isInteger(fence);
};

/** Validates the fields by which this process sorts runs, because an invalid value would crash the process later, when it takes the run. */
const isRun = ({ task, attempt, dueMs, priority }: PollAnswer["runs"][number]): boolean =>
  typeof task === "string" &&
  Number.isInteger(attempt) &&
  Number.isFinite(dueMs) &&
  Number.isInteger(priority) &&
  priority >= 0 &&
  priority <= 9;

function pack(plain: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    gzip(plain, { level: 1 }, (error, packed) => (error ? reject(error) : resolve(packed)));
  });
}

/**
 * Converts an error response. A status of 500 or above, or a code that this version does not know, counts as an unreachable
 * server.
 */
function refusal(status: number, text: string): CarillonError {
  const { code = "", detail: what = `the server answered ${status}`, hint = "" } = problemWords(text);
  if (status >= 500 || !Object.hasOwn(errorCodes, code)) return new CarillonError("SERVER_UNREACHABLE", what);
  return new CarillonError(code as ErrorCode, what, { hint });
}
