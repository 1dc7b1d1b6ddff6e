/**
 * One connection to one server. It opens, exchanges the handshake, sends calls and reads their answers in order, detects a silent server,
 * and is lost at most once. The caller manages the session, and decides what happens to calls without an answer.
 */
import net from "node:net";
import tls from "node:tls";
import { serverError, serverErrors, ZooKeeperError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import type { Call, Question } from "../requests/call.ts";
import { requestTooLarge } from "../requests/questions.ts";
import { ReadsTogether } from "../requests/reads-together.ts";
import { Reader, Writer } from "../wire/bytes.ts";
import { maxXid, op, xid } from "../wire/codes.ts";
import { FrameReader } from "../wire/frames.ts";
import type { Server } from "./hosts.ts";

/** The highest transaction number that the client has seen: see `Connection.#see`. The client may reset it to 0. */
export interface Progress {
  zxid: bigint;
}

export interface Credentials {
  readonly id: bigint;
  readonly password: Buffer;
}

export const noCredentials: Credentials = { id: 0n, password: Buffer.alloc(16) };

export interface ConnectionOptions {
  readonly host: Server;
  readonly tls: tls.ConnectionOptions | undefined;
  readonly credentials: Credentials;
  readonly sessionTimeoutMs: number;
  /** True if a server without a quorum may accept the session. */
  readonly readOnly: boolean;
  /** The time limit in ms for the connection and the handshake. */
  readonly connectMs: number;
  readonly maxReplyBytes: number;
  readonly maxRequestBytes: number;
  readonly progress: Progress;
  readonly signal: AbortSignal;
  notified(type: number, path: string): void;
}

export interface Welcome extends Credentials {
  /** The negotiated session timeout; 0 if the server has already ended the requested session. */
  readonly timeoutMs: number;
  /** True if the server has no quorum and answers only reads. */
  readonly readOnly: boolean;
}

/** The server closed an open connection without a reason, as servers do in the handshake if they lack a quorum, recent data or room. */
export class Refused extends Error {}

/** One read buffer for all connections: received bytes are processed before the next read overwrites them. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);

export class Connection {
  readonly host: Server;
  /** The server's answer to the handshake. */
  welcome: Welcome = { ...noCredentials, timeoutMs: 0, readOnly: false };
  /** Set once the request to end the session has been sent; later calls are rejected with this error. */
  closing: ZooKeeperError | undefined;
  /** Monotonic ms at which the last answered request was sent. The session was alive at that time. */
  renewedAt: number;
  /** Resolves with the reason once the connection is lost. */
  readonly lost: Promise<Error>;
  #resolveLost: (reason: Error) => void = () => undefined;
  #over: Error | undefined;
  readonly #socket: net.Socket;
  readonly #progress: Progress;
  readonly #maxReplyBytes: number;
  readonly #maxRequestBytes: number;
  readonly #notified: ConnectionOptions["notified"];
  readonly #writer = new Writer();
  readonly #reader = new Reader();
  #welcomed: ((error: Error | undefined) => void) | undefined;
  /** Calls that were sent, in order. Calls before index `#head` have been answered. */
  #calls: (Call | ReadsTogether)[] = [];
  #head = 0;
  /** The number of unanswered calls minus the number of unanswered entries of `#calls`: an entry of combined reads has several calls. */
  #shared = 0;
  /** Consecutive reads of this turn of the event loop, which may still be combined into one request. */
  #reads: Call[] = [];
  /** True until the server answers that it does not support multiRead, or until a combined answer is larger than `maxReplyBytes`. */
  #readsTogether = true;
  #xid = 0;
  #flushing = false;
  #receivedAt: number;
  /** Monotonic ms at which the last answer to a call, or a part of an answer, arrived. */
  #answeredAt = 0;
  #sentAt: number;
  #pingSentAt: number | undefined;
  #pinged: (() => void)[] = [];
  readonly #auths: ((error: Error | undefined) => void)[] = [];
  readonly #watchesSet: ((code: number) => void)[] = [];
  #pulse: NodeJS.Timeout | undefined;

  /**
   * @returns a connection whose `welcome` shows whether the server accepted the session
   * @throws Refused; the network error; an Error if no answer comes in time or `signal` aborts; a ZooKeeperError for a wrong answer
   */
  static async open(options: ConnectionOptions): Promise<Connection> {
    const connection = new Connection(options);
    await new Promise<void>((resolve, reject) => {
      const late = setTimeout(() => connection.end(new Error("no answer in time")), options.connectMs);
      const aborted = () => connection.end(new Error("given up"));
      options.signal.addEventListener("abort", aborted, { once: true });
      connection.#welcomed = (error) => {
        clearTimeout(late);
        options.signal.removeEventListener("abort", aborted);
        connection.#welcomed = undefined;
        if (error) reject(error);
        else resolve();
      };
      if (options.signal.aborted) aborted();
    });
    return connection;
  }

  private constructor(options: ConnectionOptions) {
    this.host = options.host;
    this.#progress = options.progress;
    this.#maxReplyBytes = options.maxReplyBytes;
    this.#maxRequestBytes = options.maxRequestBytes;
    this.#notified = options.notified;
    this.renewedAt = this.#receivedAt = this.#sentAt = performance.now();
    this.lost = new Promise((resolve) => {
      this.#resolveLost = resolve;
    });
    const { name, host, port } = options.host;
    const secure = options.tls;
    const frames = new FrameReader(options.maxReplyBytes, {
      frame: (buffer, start, end) => this.#frame(buffer, start, end),
      oversized: (head, bytes) => this.#oversized(head, bytes),
    });
    const onread = {
      buffer: readBuffer,
      callback: (bytes: number) => {
        this.#receivedAt = performance.now();
        try {
          frames.push(readBuffer.subarray(0, bytes));
          if (frames.inside) this.#answeredAt = this.#receivedAt;
        } catch (error) {
          this.end(
            new ZooKeeperError("PROTOCOL", `the server at ${host}:${port} sent nonsense: ${error}`, { cause: error }),
          );
        }
        return !this.#rests(bytes);
      },
    };
    const address = { host, port, onread };
    this.#socket = secure
      ? tls.connect({ servername: net.isIP(name) ? "" : name, ...secure, ...address })
      : net.connect(address);
    this.#socket.setNoDelay(true);
    let open = false;
    this.#socket.once(secure ? "secureConnect" : "connect", () => {
      open = true;
      this.#shakeHands(options);
    });
    this.#socket.on("error", (error) => this.end(open ? new Refused(error.message, { cause: error }) : error));
    this.#socket.on("close", () => this.end(open ? new Refused("the server hung up") : new Error("closed")));
  }

  /**
   * Pauses reading for `restMs` once all received data has been read: a busy server sends a few answers at a time, and waking up for them
   * costs more than reading them. Meanwhile more answers arrive, and the server still has requests. @returns true if reading is paused
   */
  #rests(bytes: number): boolean {
    if (this.unanswered < limits.restUnanswered || bytes === readBuffer.length || this.#over) return false;
    setTimeout(() => {
      if (!this.#over) this.#socket.resume();
    }, limits.restMs);
    return true;
  }

  get isLost(): boolean {
    return this.#over !== undefined;
  }

  /** Removes and returns the unanswered calls, oldest first. */
  takeUnanswered(): Call[] {
    const sent = this.#calls.slice(this.#head);
    const unsent = this.#reads;
    this.#calls = [];
    this.#head = this.#shared = 0;
    this.#reads = [];
    return [...sent.flatMap((one) => (one instanceof ReadsTogether ? one.calls : one)), ...unsent];
  }

  /** Sends a call. @throws the error if the request cannot be written; then nothing of the request is sent */
  send(call: Call): void {
    // All requests of one turn get the time of the first one. Too early a time is safe, because it extends the session by less.
    if (!this.#flushing) this.#sentAt = performance.now();
    call.sentAt = this.#sentAt;
    if (call.question.together && this.#readsTogether && this.unanswered >= limits.togetherUnanswered) {
      this.#reads.push(call);
      if (this.#reads.length === limits.mostTogether) this.#sendReads();
      this.#flushLater();
    } else this.#sendAlone(call);
  }

  #sendAlone(call: Call): void {
    this.#sendReads();
    call.xid = this.#nextXid();
    const { question } = call;
    call.bytes = this.#write(call.xid, question.op, (writer) => question.write(writer), question);
    this.#calls.push(call);
  }

  #sendReads(): void {
    const reads = this.#reads;
    if (reads.length === 0) return;
    this.#reads = [];
    if (reads.length === 1) {
      this.#sendAlone(reads[0] as Call);
      return;
    }
    const together = new ReadsTogether(reads);
    together.xid = this.#nextXid();
    this.#write(together.xid, op.multiRead, (writer) => together.write(writer));
    this.#calls.push(together);
    this.#shared += reads.length - 1;
  }

  /**
   * Sends the combined reads one by one, because the server does not support multiRead or the combined answer is too large. They are
   * answered after later calls, as after a reconnect.
   */
  #oneByOne({ calls }: ReadsTogether): void {
    this.#readsTogether = false;
    for (const call of calls) if (!call.settled) this.#sendAlone(call);
  }

  #nextXid(): number {
    this.#xid = this.#xid >= maxXid ? 1 : this.#xid + 1;
    return this.#xid;
  }

  /** The number of calls without an answer. */
  get unanswered(): number {
    return this.#calls.length - this.#head + this.#shared + this.#reads.length;
  }

  /** Number of bytes that wait to be sent. */
  get unsentBytes(): number {
    return this.#socket.writableLength + this.#writer.pending;
  }

  /** Sends credentials, which apply to all later requests. @param told called with undefined once they are accepted, or with the error */
  sendAuth(scheme: string, credentials: Uint8Array, told: (error: Error | undefined) => void): void {
    if (this.#over) {
      told(this.#over);
      return;
    }
    this.#auths.push(told);
    this.#write(xid.auth, op.auth, (writer) => {
      writer.int(0);
      writer.string(scheme);
      writer.buffer(credentials);
    });
  }

  /** @param told called with the server's code; 0: the watches are set. It is not called if the connection is lost first. */
  sendSetWatches(write: (writer: Writer) => void, told: (code: number) => void): void {
    this.#watchesSet.push(told);
    this.#write(xid.setWatches, op.setWatches2, write);
  }

  /** Sends a ping; resolves when the server answers it or the connection is lost. */
  ping(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#over) return resolve();
      this.#pinged.push(resolve);
      if (this.#pingSentAt === undefined) this.#sendPing();
    });
  }

  #sendPing(): void {
    this.#pingSentAt = this.#sentAt = performance.now();
    this.#write(xid.ping, op.ping, () => undefined);
  }

  end(reason: Error): void {
    if (this.#over) return;
    this.#over = reason;
    clearInterval(this.#pulse);
    this.#socket.destroy();
    this.#welcomed?.(reason);
    for (const told of this.#auths.splice(0)) told(reason);
    for (const told of this.#pinged.splice(0)) told();
    this.#resolveLost(reason);
  }

  /** Writes one request to the output buffer. @throws DATA_TOO_LARGE for a call that is too large; the error that `body` throws */
  #write(id: number, code: number, body: (writer: Writer) => void, about?: Question<unknown>): number {
    this.#sendReads();
    const writer = this.#writer;
    writer.beginFrame();
    try {
      writer.int(id);
      writer.int(code);
      body(writer);
    } catch (error) {
      writer.dropFrame();
      throw error;
    }
    const bytes = writer.endFrame();
    if (about && bytes - 4 > this.#maxRequestBytes) {
      writer.dropFrame();
      throw requestTooLarge(about.what, about.path, bytes - 4, this.#maxRequestBytes);
    }
    this.#flushLater();
    return bytes;
  }

  /** Sends all requests of this turn of the event loop in one write. */
  #flushLater(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    setImmediate(() => {
      this.#flushing = false;
      if (this.#over) return;
      this.#sendReads();
      this.#socket.write(this.#writer.take());
    });
  }

  #shakeHands({ credentials, sessionTimeoutMs, readOnly, progress }: ConnectionOptions): void {
    this.renewedAt = this.#sentAt = performance.now();
    const writer = this.#writer;
    writer.beginFrame();
    writer.int(0);
    writer.long(progress.zxid);
    writer.int(sessionTimeoutMs);
    writer.long(credentials.id);
    writer.buffer(credentials.password);
    writer.bool(readOnly);
    writer.endFrame();
    this.#socket.write(writer.take());
  }

  #frame(buffer: Buffer, start: number, end: number): void {
    if (this.#over) return;
    const reader = this.#reader.over(buffer, start, end);
    if (this.#welcomed) this.#readWelcome(reader, this.#welcomed);
    else this.#readReply(reader);
  }

  #readReply(reader: Reader): void {
    const id = reader.int();
    const zxid = reader.long();
    const code = reader.int();
    this.#see(zxid);
    if (id === xid.notification) {
      const type = reader.int();
      reader.int();
      this.#notified(type, reader.string());
    } else if (id === xid.ping) {
      if (this.#pingSentAt !== undefined) this.#renew(this.#pingSentAt);
      this.#pingSentAt = undefined;
      for (const told of this.#pinged.splice(0)) told();
    } else if (id === xid.auth) {
      const error = new ZooKeeperError("AUTH_FAILED", "the server refuses the credentials", {
        hint: "check scheme, user and password; for SASL, the server's configuration",
      });
      this.#auths.shift()?.(code === 0 ? undefined : error);
    } else if (id === xid.setWatches) this.#watchesSet.shift()?.(code);
    else this.#answer(id, code, reader);
  }

  /**
   * Records a transaction number as seen, unless watches are still being set: if the connection is lost first, the next connection must
   * request the events since the old number. Numbers of a server without a quorum do not count: the quorum may never get its transactions.
   */
  #see(zxid: bigint): void {
    if (this.welcome.readOnly) return;
    if (this.#watchesSet.length === 0 && zxid > this.#progress.zxid) this.#progress.zxid = zxid;
  }

  #answer(id: number, code: number, reader: Reader): void {
    const call = this.#next(id);
    if (call instanceof ReadsTogether && code === serverErrors.UNIMPLEMENTED[0]) {
      this.#oneByOne(call);
      return;
    }
    try {
      call.answer(code, reader);
    } catch (error) {
      const ofTheAnswer = error instanceof ZooKeeperError;
      const { what, path } = call.question;
      call.fail(
        ofTheAnswer
          ? error
          : new ZooKeeperError("PROTOCOL", `${what}: the answer cannot be read`, { path, cause: error }),
      );
      if (!ofTheAnswer) throw error;
    }
  }

  /** Removes and returns the call to which this answer belongs. @throws RangeError if answers do not come in the order of the calls */
  #next(id: number): Call | ReadsTogether {
    this.#answeredAt = this.#receivedAt;
    const call = this.#calls[this.#head];
    if (!call || call.xid !== id) throw new RangeError(`an answer to request ${id} instead of ${call?.xid}`);
    this.#head += 1;
    if (this.#head === this.#calls.length) {
      this.#calls = [];
      this.#head = 0;
    } else if (this.#head === 1_024) {
      this.#calls = this.#calls.slice(this.#head);
      this.#head = 0;
    }
    if (call instanceof ReadsTogether) this.#shared -= call.calls.length - 1;
    this.#renew(call.sentAt);
    return call;
  }

  #renew(sentAt: number): void {
    if (sentAt > this.renewedAt) this.renewedAt = sentAt;
  }

  #oversized(head: Buffer, bytes: number): void {
    const reader = this.#reader.over(head, 0, head.length);
    const id = reader.int();
    const zxid = reader.long();
    this.#see(zxid);
    if (this.#welcomed || id < 0) throw new RangeError(`a message of ${bytes} bytes`);
    const call = this.#next(id);
    if (call instanceof ReadsTogether) {
      this.#oneByOne(call);
      return;
    }
    const { what, path } = call.question;
    call.fail(
      new ZooKeeperError(
        "REPLY_TOO_LARGE",
        `${what}: the answer has ${bytes} bytes, the limit is ${this.#maxReplyBytes}`,
        {
          path,
          hint: "raise the option maxReplyBytes, or spread the children over several parents",
        },
      ),
    );
  }

  #readWelcome(reader: Reader, welcomed: (error: Error | undefined) => void): void {
    // A server without a quorum and without local sessions sends a reply header (16 bytes) instead of the handshake's answer.
    const refused = reader.left === 16;
    reader.int();
    if (refused) {
      reader.long();
      this.end(serverError(reader.int(), "the beginning of a session", ""));
      return;
    }
    const timeoutMs = reader.int();
    const id = reader.long();
    const password = reader.buffer();
    const readOnly = reader.left > 0 && reader.bool(); // servers before 3.4 omit this field
    this.welcome = { timeoutMs, id, password, readOnly };
    if (timeoutMs > 0) this.#beat(timeoutMs);
    welcomed(undefined);
  }

  /**
   * Sends a ping after a sixteenth of the session timeout (at most 10 s) without a request, because frequent answers allow longer pauses
   * of this process. Ends the connection after two thirds of the timeout without received data, or if the oldest call has no answer for
   * the whole timeout although data arrives. A pause of this process does not count as silence of the server.
   */
  #beat(timeoutMs: number): void {
    const quietMs = Math.min(timeoutMs / 16, 10_000);
    const silentMs = (timeoutMs * 2) / 3;
    let lookedAt = performance.now();
    let awakeAt = lookedAt;
    const isSilent = () => performance.now() - Math.max(this.#receivedAt, awakeAt) >= silentMs;
    const isStuck = () => {
      const oldest = this.#calls[this.#head];
      const since = oldest && Math.max(oldest.sentAt, this.#answeredAt, awakeAt);
      return since !== undefined && performance.now() - since >= timeoutMs;
    };
    this.#pulse = setInterval(
      () => {
        const now = performance.now();
        if (now - lookedAt >= silentMs / 2) awakeAt = now;
        lookedAt = now;
        if (isSilent() || isStuck()) {
          // After a pause of this process, unread answers may be in the socket. They are read before this callback runs.
          setImmediate(() => {
            if (isSilent()) this.end(new Error(`the server was silent for ${Math.round(silentMs)} ms`));
            else if (isStuck()) this.end(new Error(`the server did not answer a call for ${timeoutMs} ms`));
          });
        } else if (now - this.#sentAt >= quietMs && this.#pingSentAt === undefined) this.#sendPing();
      },
      Math.max(5, timeoutMs / 48),
    );
  }
}
