/** Opcodes of ZooKeeper's protocol, from Java's `ZooDefs.OpCode` and `ClientCnxn`. */
export const op = {
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getAcl: 6,
  setAcl: 7,
  sync: 9,
  ping: 11,
  getChildren2: 12,
  check: 13,
  multi: 14,
  create2: 15,
  reconfig: 16,
  removeWatches: 18,
  createContainer: 19,
  createTtl: 21,
  multiRead: 22,
  auth: 100,
  sasl: 102,
  getEphemerals: 103,
  getAllChildrenNumber: 104,
  setWatches2: 105,
  addWatch: 106,
  whoAmI: 107,
  closeSession: -11,
  error: -1,
} as const;

export const xid = { notification: -1, ping: -2, auth: -4, setWatches: -8 } as const;

export const maxXid = 2_147_483_647;

/** Flags of the create operation. */
export const flag = {
  persistent: 0,
  ephemeral: 1,
  sequential: 2,
  ephemeralSequential: 3,
  container: 4,
  ttl: 5,
  ttlSequential: 6,
} as const;

export const addWatchMode = { persistent: 0, persistentRecursive: 1 } as const;

export const watcherType = { children: 1, data: 2, any: 3 } as const;

/** Types of watch events that report a change. */
export const eventType = { created: 1, deleted: 2, changed: 3, children: 4 } as const;
