import { until } from "./store-stage.ts";

type Call = (...args: unknown[]) => unknown;

/** The number of turns of the event loop that must pass without a call. A call that follows from a reply begins earlier than that. */
const turns = 3;

/**
 * Counts the calls to a store that one process makes. A test can wait until no call is under way and none follows from the last reply. From
 * then on, only the timers of a virtual clock can cause further calls.
 */
export class CallMeter {
  #begun = 0;
  #open = 0;

  /** Returns the same store with counted calls. Calls of `listen`, which wait for signals without end, are not counted. */
  over<Store extends object>(store: Store): Store {
    return new Proxy(store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value === "function") return name === "listen" ? value : this.#counted(value as Call, target);
        return typeof value === "object" && value !== null ? this.over(value) : value;
      },
    });
  }

  #counted(call: Call, owner: object): Call {
    return async (...args) => {
      this.#begun++;
      this.#open++;
      try {
        return await call.apply(owner, args);
      } finally {
        this.#open--;
      }
    };
  }

  /** Waits until no call is under way and none has begun for some turns of the event loop. */
  rest(): Promise<true> {
    return until("every call to be answered, and none to follow", async () => {
      const begun = this.#begun;
      for (let turn = 0; turn < turns; turn++) {
        if (this.#open > 0 || this.#begun !== begun) return false;
        await new Promise((resolve) => setImmediate(resolve));
      }
      return this.#open === 0 && this.#begun === begun;
    });
  }
}
