import type { CallOptions, Data, Operation, OperationResult, Transaction } from "../operations/operations.ts";

type Commit = (operations: readonly Operation[], options: CallOptions) => Promise<OperationResult[]>;

/** The transaction builder that `Operations.transaction` returns. */
export class OperationList implements Transaction {
  readonly #operations: Operation[] = [];
  readonly #commit: Commit;

  constructor(commit: Commit) {
    this.#commit = commit;
  }

  create(path: string, data?: Data, options: Parameters<Transaction["create"]>[2] = {}): this {
    return this.#add({ ...options, type: "create", path, data });
  }

  delete(path: string, version?: number): this {
    return this.#add({ type: "delete", path, version });
  }

  set(path: string, data: Data, version?: number): this {
    return this.#add({ type: "set", path, data, version });
  }

  check(path: string, version: number): this {
    return this.#add({ type: "check", path, version });
  }

  commit(options: CallOptions = {}): Promise<OperationResult[]> {
    return this.#commit(this.#operations, options);
  }

  #add(operation: Operation): this {
    this.#operations.push(operation);
    return this;
  }
}
