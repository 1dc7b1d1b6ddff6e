/**
 * The protocol of the Java program in test/java, for each recipe: the arguments that create the recipe, its operations with their
 * arguments and the words of their replies, and the events that it sends. Limits and times are milliseconds.
 */
export interface JavaRecipes {
  client: {
    make: never;
    do: {
      connected: Operation<[], [connected: "true" | "false"]>;
      session: Operation<[], [id: string]>;
      create: Operation<[path: string, mode: string, base64?: string], [path: string]>;
      get: Operation<[path: string], [base64: string]>;
      children: Operation<[path: string], string[]>;
      exists: Operation<[path: string], [exists: Truth]>;
      delete: Operation<[path: string]>;
      close: Operation;
    };
    /** The event `state`; its detail is CONNECTED, SUSPENDED, RECONNECTED, LOST or READ_ONLY. */
    events: "state";
  };
  latch: {
    make: [path: string, id: string];
    do: {
      start: Operation;
      hasLeadership: Operation<[], [leads: Truth]>;
      await: Operation<[limit: number], [leads: Truth]>;
      leader: Operation<[], [id: string]>;
      participants: Operation<[], string[]>;
      close: Operation<[mode?: "SILENT" | "NOTIFY_LEADER"]>;
    };
    events: "leader" | "notLeader";
  };
  selector: {
    make: [path: string, id: string, autoRequeue: boolean];
    do: {
      start: Operation;
      hasLeadership: Operation<[], [leads: Truth]>;
      /**
       * Waits up to ten seconds until the selector leads, and then ends its leadership. The reply is false if the selector did not lead in
       * time.
       */
      relinquish: Operation<[], [relinquished: Truth]>;
      requeue: Operation<[], [requeued: Truth]>;
      interrupt: Operation;
      leader: Operation<[], [id: string]>;
      participants: Operation<[], string[]>;
      close: Operation;
    };
    events: "take" | "released" | "interrupted";
  };
  mutex: {
    make: [path: string];
    do: {
      acquire: Operation<[limit: number], [acquired: Truth]>;
      release: Operation;
      isHeld: Operation<[], [held: Truth]>;
      participants: Operation<[], string[]>;
      /** Requests that the holder whose node has this path releases the lock. */
      revoke: Operation<[node: string]>;
    };
    events: "revoke";
  };
  readWriteLock: {
    make: [path: string];
    do: {
      acquireRead: Operation<[limit: number], [acquired: Truth]>;
      acquireWrite: Operation<[limit: number], [acquired: Truth]>;
      releaseRead: Operation;
      releaseWrite: Operation;
    };
    events: never;
  };
  semaphore: {
    make: [path: string, permits: number];
    do: {
      acquire: Operation<[limit: number, count?: number], [acquired: Truth]>;
      /** Releases one of the held leases. */
      release: Operation;
      participants: Operation<[], string[]>;
    };
    events: never;
  };
  doubleBarrier: {
    make: [path: string, members: number];
    do: { enter: Operation<[limit: number], [entered: Truth]>; leave: Operation<[limit: number], [left: Truth]> };
    events: never;
  };
  sharedCount: {
    make: [path: string, seed: number];
    do: {
      start: Operation;
      get: Operation<[], [value: string]>;
      set: Operation<[value: number]>;
      /** Sets the value; the reply is false if another process has changed the value since this process last read it. */
      trySet: Operation<[value: number], [set: Truth]>;
      close: Operation;
    };
    /** The event of a changed value; its detail is the value. */
    events: "changed";
  };
  atomicLong: {
    make: [path: string];
    do: {
      get: Operation<[], Settled>;
      add: Operation<[delta: number | bigint], Settled>;
      trySet: Operation<[value: number | bigint], Settled>;
      compareAndSet: Operation<[expected: number | bigint, value: number | bigint], Settled>;
      forceSet: Operation<[value: number | bigint]>;
      initialize: Operation<[value: number | bigint], [initialized: Truth]>;
    };
    events: never;
  };
  group: {
    make: [path: string, id: string, data: string];
    do: {
      start: Operation;
      /** The members, each as `ID=DATA`. */
      members: Operation<[], string[]>;
      setData: Operation<[data: string]>;
      close: Operation;
    };
    events: never;
  };
  discovery: {
    make: [path: string];
    do: {
      /** Registers an instance that is given as JSON. */
      register: Operation<[json: string]>;
      update: Operation<[json: string]>;
      unregister: Operation<[name: string, id: string]>;
      names: Operation<[], string[]>;
      /** Returns the instances as JSON, sorted as text. */
      instances: Operation<[name: string], string[]>;
      /** Reads an instance from JSON, and returns the JSON that Java writes for it. */
      again: Operation<[json: string, isEnabledWritten: boolean], [json: string]>;
      uri: Operation<[json: string], [uri: string]>;
      /** Starts a round-robin provider. The event `changed` is sent when its instances change. */
      provide: Operation<[name: string]>;
      /** Returns the id of the provider's next instance, or `-`. */
      next: Operation<[], [id: string]>;
      close: Operation;
    };
    events: "changed";
  };
  queue: Queue<[]>;
  idQueue: Queue<[id: string]> & { do: { remove: Operation<[id: string], [removed: string]> } };
  /** An item is put with its due time, epoch ms. */
  delayQueue: Queue<[due: number]>;
  /** An item is put with its priority; the lowest one comes first. */
  priorityQueue: Queue<[priority: number]>;
}

export interface Operation<Arguments extends Word[] = [], Reply extends string[] = []> {
  readonly arguments: Arguments;
  readonly reply: Reply;
}

export type Word = string | number | bigint | boolean | undefined;

type Truth = "true" | "false";
type Settled = [succeeded: Truth, valueAfter: string];

interface Queue<More extends Word[]> {
  make: [path: string, lockPath: string | "-", side: "produces" | "consumes"];
  do: {
    start: Operation;
    put: Operation<[text: string, ...More]>;
    /** Puts several items into one node; their texts are joined by commas. */
    putMany: Operation<[texts: string, ...More]>;
    /** Waits until all put items are stored; the reply is false if `limit` passes first. */
    flush: Operation<[limit: number], [stored: Truth]>;
    /** The handler throws for this number of the next items. */
    fail: Operation<[items: number]>;
    /** The handler never returns for this number of the next items. */
    hold: Operation<[items: number]>;
    close: Operation;
  };
  /** Events with an item's text: `item` for a consumed item, `failed` for one that `fail` applies to, `held` for one of `hold`. */
  events: "item" | "failed" | "held";
}
