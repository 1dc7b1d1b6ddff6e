/** Builds the requests of the operations. The requests contain full paths, with the chroot. */

import { serverError, serverErrors, ZooKeeperError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import { checkPath, parentOf, withChroot, withoutChroot } from "../base/paths.ts";
import { tell } from "../base/tell.ts";
import { type Acl, openAcl, readAcls, writeAcl } from "../operations/acl.ts";
import type { CreateOptions, Data, Operation, OperationResult, ReconfigOptions } from "../operations/operations.ts";
import { readStat, type Stat } from "../operations/stat.ts";
import { type Reader, type Writer, writeMultiEnd, writeMultiHeader } from "../wire/bytes.ts";
import { addWatchMode, flag, op, watcherType } from "../wire/codes.ts";
import type { Question } from "./call.ts";

type NewNode = Omit<CreateOptions, "signal">;

/**
 * Returns the opcode and the flags of a create with these options.
 * @throws OPTION_INVALID for options that exclude each other, or a wrong `ttlMs`
 */
function createMode(path: string, options: NewNode): { op: number; flags: number } {
  const { ephemeral, sequential, container, ttlMs } = options;
  const wrong = (problem: string) =>
    new ZooKeeperError("OPTION_INVALID", `create ${path}: ${problem}`, { path, hint: "choose one of them" });
  if (container) {
    if (ephemeral || sequential || ttlMs !== undefined) throw wrong("a container cannot be anything else as well");
    return { op: op.createContainer, flags: flag.container };
  }
  if (ttlMs !== undefined) {
    if (ephemeral) throw wrong("an ephemeral node cannot have a time to live as well");
    if (!Number.isSafeInteger(ttlMs) || ttlMs < 1 || ttlMs >= 2 ** 40) {
      throw new ZooKeeperError("OPTION_INVALID", `create ${path}: ttlMs is ${ttlMs}`, {
        path,
        hint: "a whole number of milliseconds from 1 to 2^40 - 1",
      });
    }
    return { op: op.createTtl, flags: sequential ? flag.ttlSequential : flag.ttl };
  }
  if (ephemeral) return { op: op.create2, flags: sequential ? flag.ephemeralSequential : flag.ephemeral };
  return { op: op.create2, flags: sequential ? flag.sequential : flag.persistent };
}

/** @param what the operation for the message, such as `create /a` */
export function requestTooLarge(what: string, path: string, bytes: number, limit: number): ZooKeeperError {
  return new ZooKeeperError("DATA_TOO_LARGE", `${what}: ${bytes} bytes, and a server takes ${limit} at most`, {
    path,
    hint: "keep large data elsewhere, and its address here; where jute.maxbuffer is larger, say so with maxRequestBytes",
  });
}

/** Returns the approximate size in bytes, which is sufficient for a limit: a string counts one byte per character. */
function bytesOf(data: Data | undefined): number {
  return data?.length ?? 0;
}

function checkVersion(what: string, path: string, version: number): void {
  if (Number.isInteger(version) && version >= -1 && version <= 2_147_483_647) return;
  throw new ZooKeeperError("OPTION_INVALID", `${what}: the version is ${version}`, {
    path,
    hint: "give stat.version as it was read, or leave it out",
  });
}

const none = (): void => undefined;

export class Questions {
  readonly #chroot: string;
  readonly #maxRequestBytes: number;

  constructor(chroot: string, maxRequestBytes: number = limits.maxRequestBytes) {
    this.#chroot = chroot;
    this.#maxRequestBytes = maxRequestBytes;
  }

  create(path: string, data: Data | undefined, options: NewNode): Question<{ path: string; stat: Stat }> {
    const write = this.#create(path, data, options);
    return {
      op: createMode(path, options).op,
      what: `create ${path}`,
      path,
      repeatable: false,
      dataBytes: bytesOf(data),
      write,
      explain: this.#noChroot(`create ${path}`, path, parentOf(path)),
      read: (reader) => ({ path: withoutChroot(this.#chroot, reader.string()), stat: readStat(reader) }),
    };
  }

  #create(path: string, data: Data = "", options: NewNode): (writer: Writer) => void {
    checkPath(path, options.sequential);
    const { flags } = createMode(path, options);
    this.#checkData(`create ${path}`, path, data);
    const full = withChroot(this.#chroot, path);
    return (writer) => {
      writer.string(full);
      writer.buffer(data);
      writeAcl(writer, options.acl ?? openAcl);
      writer.int(flags);
      if (options.ttlMs !== undefined) writer.long(BigInt(options.ttlMs));
    };
  }

  /**
   * Explains the error NO_NODE if the missing node is the root: for a client with a chroot, this means that the chroot does not exist.
   * @param needed the path of the node that may be missing
   */
  #noChroot(what: string, path: string, needed = path): Question<unknown>["explain"] {
    if (this.#chroot === "" || needed !== "/") return undefined;
    return (code) => {
      if (code !== serverErrors.NO_NODE[0]) return undefined;
      return new ZooKeeperError("NO_NODE", `${what}: the chroot ${this.#chroot} does not exist`, {
        path,
        hint: "create it, or connect with createChroot: true",
      });
    };
  }

  delete(path: string, version = -1): Question<void> {
    return {
      op: op.delete,
      what: `delete ${path}`,
      path,
      repeatable: false,
      write: this.#versioned("delete", path, version),
      read: none,
    };
  }

  set(path: string, data: Data, version = -1): Question<Stat> {
    return {
      op: op.setData,
      what: `set ${path}`,
      path,
      repeatable: false,
      dataBytes: bytesOf(data),
      write: this.#set(path, data, version),
      explain: this.#noChroot(`set ${path}`, path),
      read: readStat,
    };
  }

  #set(path: string, data: Data, version: number): (writer: Writer) => void {
    checkPath(path);
    checkVersion(`set ${path}`, path, version);
    this.#checkData(`set ${path}`, path, data);
    const full = withChroot(this.#chroot, path);
    return (writer) => {
      writer.string(full);
      writer.buffer(data);
      writer.int(version);
    };
  }

  /**
   * Checks the data's type and size before the data is stored or copied. The size of the whole frame is checked when the request is
   * written. @throws OPTION_INVALID, DATA_TOO_LARGE
   */
  #checkData(what: string, path: string, data: Data): void {
    const limit = this.#maxRequestBytes;
    if (typeof data === "string" && data.length * 3 <= limit) return;
    if (typeof data !== "string" && !(data instanceof Uint8Array)) {
      throw new ZooKeeperError(
        "OPTION_INVALID",
        `${what}: the data are ${data === null ? "null" : `of type ${typeof data}`}`,
        {
          path,
          hint: 'give a text or bytes, "" for none; options come after the data',
        },
      );
    }
    const bytes = typeof data === "string" ? Buffer.byteLength(data) : data.length;
    if (bytes > limit) throw requestTooLarge(what, path, bytes, limit);
  }

  #versioned(what: string, path: string, version: number): (writer: Writer) => void {
    checkPath(path);
    checkVersion(`${what} ${path}`, path, version);
    const full = withChroot(this.#chroot, path);
    return (writer) => {
      writer.string(full);
      writer.int(version);
    };
  }

  exists(path: string, watch: boolean): Question<Stat | undefined> {
    return {
      ...this.#watched<Stat | undefined>(op.exists, "exists", path, watch, readStat),
      readError: (code) => (code === serverErrors.NO_NODE[0] ? { value: undefined } : undefined),
    };
  }

  get(path: string, watch: boolean): Question<{ data: Buffer; stat: Stat }> {
    const question: Question<{ data: Buffer; stat: Stat }> = this.#watched(
      op.getData,
      "get",
      path,
      watch,
      (reader) => ({
        data: reader.buffer(),
        stat: readStat(reader),
      }),
    );
    question.together = !watch;
    question.explain = this.#noChroot(question.what, path);
    return question;
  }

  children(path: string, watch: boolean): Question<{ names: string[]; stat: Stat }> {
    const question = this.#watched<{ names: string[]; stat: Stat }>(
      op.getChildren2,
      "children",
      path,
      watch,
      (reader) => ({
        names: reader.list(() => reader.string()),
        stat: readStat(reader),
      }),
    );
    question.explain = this.#noChroot(question.what, path);
    return question;
  }

  eachChild(path: string, each: (name: string) => void): Question<number> {
    const question = this.#watched(op.getChildren2, "children", path, false, (reader) => {
      const count = reader.int();
      for (let index = 0; index < count; index++) tell(each, reader.string());
      return count;
    });
    question.explain = this.#noChroot(question.what, path);
    return question;
  }

  config(watch: boolean): Question<{ data: Buffer; stat: Stat }> {
    const path = "/zookeeper/config"; // this path is the same with any chroot
    return {
      op: op.getData,
      what: `get ${path}`,
      path,
      repeatable: true,
      write: (writer) => {
        writer.string(path);
        writer.bool(watch);
      },
      read: (reader) => ({ data: reader.buffer(), stat: readStat(reader) }),
    };
  }

  reconfig({ joining, leaving, members, version = -1n }: ReconfigOptions): Question<{ data: Buffer; stat: Stat }> {
    const wrong = (problem: string, hint: string) =>
      new ZooKeeperError("OPTION_INVALID", `reconfig: ${problem}`, { hint });
    for (const [name, list] of Object.entries({ joining, leaving, members })) {
      if (list !== undefined && !Array.isArray(list)) throw wrong(`${name} is a ${typeof list}`, "give a list");
    }
    if (!(joining || leaving || members)) throw wrong("nothing is to change", "give joining, leaving or members");
    if (members && (joining || leaving)) throw wrong("members names all servers", "leave joining and leaving out");
    if (typeof version !== "bigint") throw wrong(`version is a ${typeof version}`, "give the bigint of parseConfig");
    return {
      op: op.reconfig,
      what: "reconfig",
      path: "/zookeeper/config",
      repeatable: false,
      write: (writer) => {
        for (const list of [joining, leaving, members]) writer.buffer(list?.join(","));
        writer.long(version);
      },
      read: (reader) => ({ data: reader.buffer(), stat: readStat(reader) }),
    };
  }

  sync(path: string): Question<void> {
    return { op: op.sync, what: `sync ${path}`, path, repeatable: true, write: this.#path(path), read: none };
  }

  getAcl(path: string): Question<{ acl: Acl[]; stat: Stat }> {
    return {
      op: op.getAcl,
      what: `getAcl ${path}`,
      path,
      repeatable: true,
      write: this.#path(path),
      explain: this.#noChroot(`getAcl ${path}`, path),
      read: (reader) => ({ acl: readAcls(reader), stat: readStat(reader) }),
    };
  }

  setAcl(path: string, acl: readonly Acl[], version = -1): Question<Stat> {
    checkVersion(`setAcl ${path}`, path, version);
    const writePath = this.#path(path);
    const write = (writer: Writer) => {
      writePath(writer);
      writeAcl(writer, acl);
      writer.int(version);
    };
    const what = `setAcl ${path}`;
    return { op: op.setAcl, what, path, repeatable: false, write, explain: this.#noChroot(what, path), read: readStat };
  }

  addWatch(path: string, recursive: boolean): Question<void> {
    const writePath = this.#path(path);
    const write = (writer: Writer) => {
      writePath(writer);
      writer.int(recursive ? addWatchMode.persistentRecursive : addWatchMode.persistent);
    };
    return { op: op.addWatch, what: `watch ${path}`, path, repeatable: true, write, read: none };
  }

  removeWatches(path: string): Question<void> {
    const writePath = this.#path(path);
    const write = (writer: Writer) => {
      writePath(writer);
      writer.int(watcherType.any);
    };
    return { op: op.removeWatches, what: `removeWatches ${path}`, path, repeatable: false, write, read: none };
  }

  ephemerals(prefix: string): Question<string[]> {
    return {
      op: op.getEphemerals,
      what: `ephemerals ${prefix}`,
      path: prefix,
      repeatable: true,
      write: this.#path(prefix),
      read: (reader) => reader.list(() => withoutChroot(this.#chroot, reader.string())),
    };
  }

  descendantCount(path: string): Question<number> {
    return {
      op: op.getAllChildrenNumber,
      what: `descendantCount ${path}`,
      path,
      repeatable: true,
      write: this.#path(path),
      read: (reader) => reader.int(),
    };
  }

  whoAmI(): Question<{ scheme: string; id: string }[]> {
    const read = (reader: Reader) => reader.list(() => ({ scheme: reader.string(), id: reader.string() }));
    return { op: op.whoAmI, what: "whoAmI", path: "", repeatable: true, write: none, read };
  }

  multi(operations: readonly Operation[]): Question<OperationResult[]> {
    const parts = operations.map((operation) => this.#part(operation));
    const what = `multi of ${operations.length}`;
    return {
      op: op.multi,
      what,
      path: operations[0]?.path ?? "",
      repeatable: false,
      dataBytes: operations.reduce((sum, one) => sum + ("data" in one ? bytesOf(one.data) : 0), 0),
      write: (writer) => {
        for (const part of parts) {
          writeMultiHeader(writer, part.op);
          part.write(writer);
        }
        writeMultiEnd(writer);
      },
      read: (reader) => this.#readMulti(reader, operations),
    };
  }

  #part(operation: Operation): { op: number; write: (writer: Writer) => void } {
    const { path } = operation;
    switch (operation.type) {
      case "create": {
        const mode = createMode(path, operation);
        return { op: mode.op, write: this.#create(path, operation.data, operation) };
      }
      case "delete":
        return { op: op.delete, write: this.#versioned("delete", path, operation.version ?? -1) };
      case "set":
        return { op: op.setData, write: this.#set(path, operation.data, operation.version ?? -1) };
      case "check":
        return { op: op.check, write: this.#versioned("check", path, operation.version) };
    }
  }

  /**
   * Decodes the answer to a multi. The answer to a failed multi has an error code for each operation: 0 for operations before the failed
   * one, and RUNTIME_INCONSISTENCY for operations after it. @throws the error of the failed operation, or a RangeError
   */
  #readMulti(reader: Reader, operations: readonly Operation[]): OperationResult[] {
    const results: OperationResult[] = [];
    for (let index = 0; ; index++) {
      const type = reader.int();
      const done = reader.bool();
      reader.int();
      if (done) return results;
      const operation = operations[index];
      if (type === op.error) {
        const code = reader.int();
        if (code === 0 || code === serverErrors.RUNTIME_INCONSISTENCY[0]) continue;
        const { type: kind = "", path = "" } = operation ?? {};
        const what = `multi, operation ${index + 1} of ${operations.length}: ${kind} ${path}`;
        const explain = this.#noChroot(what, path, kind === "create" ? parentOf(path) : path);
        throw explain?.(code) ?? serverError(code, what, path);
      }
      if (type === op.delete) results.push({ type: "delete" });
      else if (type === op.check) results.push({ type: "check" });
      else if (type === op.setData) results.push({ type: "set", stat: readStat(reader) });
      else if (type === op.create || type === op.create2) {
        // For a create, only the path is used; the answer to a `create2` also contains the node's `stat`.
        results.push({ type: "create", path: withoutChroot(this.#chroot, reader.string()) });
        if (type === op.create2) readStat(reader);
      } else throw new RangeError(`an operation of type ${type}`);
    }
  }

  #path(path: string): (writer: Writer) => void {
    checkPath(path);
    const full = withChroot(this.#chroot, path);
    return (writer) => writer.string(full);
  }

  #watched<T>(code: number, what: string, path: string, watch: boolean, read: (reader: Reader) => T): Question<T> {
    checkPath(path);
    const full = withChroot(this.#chroot, path);
    const write = (writer: Writer) => {
      writer.string(full);
      writer.bool(watch);
    };
    return { op: code, what: `${what} ${path}`, path, repeatable: true, write, read };
  }
}
