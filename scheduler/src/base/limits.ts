/** Every bound of the project, with its unit in its name. */
export const limits = {
  /** The size of one payload or result, as UTF-8 JSON. */
  payloadBytes: 256 * 1024,
  /** The depth of a payload, a result, or any other stored JSON: some readers run out of stack on deeper values. */
  jsonDepth: 200,
  taskNameLength: 200,
  groupNameLength: 100,
  nodeNameLength: 100,
  calendarNameLength: 100,
  secretNameLength: 100,
  /** The length of the reason for a change. */
  reasonLength: 1_000,
  /** The length of a fingerprint, which identifies the reason of dead letters. */
  fingerprintLength: 100,
  keyLength: 200,
  /** The largest limit of a group: above, it would limit nothing. */
  groupRuns: 100_000,
  /** Runs that one run is split into. */
  shards: 1_000,
  /** The number of tasks that one task may come after. */
  upstreamTasks: 100,
  /** The number of children of one run. */
  children: 10_000,
  /** Children that one statement creates, or that one poll of a remote worker requests. */
  childrenAtOnce: 1_000,
  /** A run's inputs in one answer to a remote worker: their number, and the bytes of their results and errors. */
  inputsPerPoll: 1_000,
  inputBytesPerPoll: 8 * 1024 * 1024,
  /** Groups of dead letters in one answer, the largest first; and the tasks that are named for each group. */
  deadGroups: 1_000,
  deadGroupTasks: 100,
  /** Grants of one user; and namespaces of one token. */
  grants: 1_000,
  /**
   * Task definitions cached in one process, some 1 to 2 kB each. The half that was used last is sure to be cached; with more tasks,
   * others are read again.
   */
  definitionsKept: 250_000,
  lockNameLength: 200,
  /** Permits of one semaphore. */
  permits: 1_000,
  /** Holders and waiters of one lock name, on PostgreSQL. */
  lockLine: 10_000,
  cronTextLength: 256,
  /** A schedule in English; the English text for a cron of the greatest length is shorter. */
  phraseLength: 2_000,
  /** The length of an RRULE with its date lines; and the number of dates that it adds, and that it leaves out. */
  ruleTextLength: 40_000,
  ruleDates: 1_000,
  /** COUNT of an RRULE: finding the last occurrence visits all of them. */
  ruleCount: 10_000,
  /** Holidays of one calendar: some 50 years of them, or 10 in which every weekend is listed. */
  calendarDays: 5_000,
  /** A comparison of two versions of a calendar: tasks; days ahead; slots of one task that are compared, and that are listed. */
  comparedTasks: 100,
  comparedDays: 366,
  comparedSlots: 2_000,
  comparedSlotsShown: 50,
  /** The size of a calendar's file; and the number of days that its rules give, counted before exclusions. */
  icsBytes: 1024 * 1024,
  icsOccurrences: 8_000,
  /** Milliseconds of uninterrupted work, a third of a session's timeout at most: for a calendar's file, and for a payload. */
  icsMs: 2_000,
  payloadCheckMs: 500,
  /** Windows of one task. */
  blackoutWindows: 100,
  /** A slot is due at most this much after its nominal time by jitter. */
  jitterMs: 86_400_000,
  /** The delay between two attempts of a run: after a longer one the next attempt may have no date that could be shown. */
  retryDelayMs: 366 * 86_400_000,
  /** The shortest period of a fixed rate: a horizon then holds some hundred slots. */
  shortestPeriodMs: 100,
  /** No slot is planned after this year: a cron that next fires later ends with an error. */
  lastYear: 2200,
  /** The size of a crontab to import; the largest that cron itself reads is far below. */
  crontabBytes: 1024 * 1024,
  /** A file of tasks, or an export of another scheduler's. */
  taskFileBytes: 8 * 1024 * 1024,
  /** Runs counted per state, for metrics; a figure of this size means that or more. */
  countedRuns: 100_000,
  /** Slots that one simulation visits. */
  simulatedSlots: 1_000_000,
  /** For one timeline of a fleet: the slots visited, the days, and the tasks in one answer. */
  timelineSlots: 300_000,
  timelineDays: 14,
  timelineTasks: 200,
  /** Slots of one backfill; and the slots visited in one uninterrupted piece. */
  backfillSlots: 10_000_000,
  backfillSlotsAtOnce: 2_000,
  /** The length of a task's payload schema, as JSON. */
  payloadSchemaLength: 32 * 1024,
  crontabLineLength: 16 * 1024,
  /** Bytes of one line of a command's output; the rest of the line is cut and marked. */
  commandLineBytes: 16 * 1024,
  /** Bytes of all output of one command; the rest is read, counted and thrown away. */
  commandOutputBytes: 4 * 1024 * 1024,
  /** The last lines of stderr that a failed command's error quotes, as far as its message has room for them. */
  commandLastLines: 10,
  /** The time between SIGTERM and SIGKILL. */
  commandGraceMs: 10_000,
  /**
   * Bytes of an HTTP task's response that are read; the rest is not. As JSON, escaped at its worst, this is still a result that can be
   * stored.
   */
  httpBodyBytes: 32 * 1024,
  /** The length of an HTTP task's URL, and of each of its headers. */
  urlLength: 8_000,
  /** Bytes of one request of a remote worker, unpacked. */
  pollBytes: 16 * 1024 * 1024,
  /** How long a poll waits at most; short enough for proxies that close a connection after 30 s of silence. */
  pollWaitMs: 25_000,
  /** The silence after which a remote worker is dead. */
  workerTimeoutMs: 60_000,
  /** How long before a run's due time a remote worker may claim it, at most. */
  pollAheadMs: 60_000,
  /** Claims, verdicts or log lines in one poll. */
  runsPerPoll: 2_000,
  /** Labels of one remote worker. */
  labels: 32,
  /** Labels that an enqueue gives to its run, and that a task gives to all its runs; and the length of a name and of a value. */
  runLabels: 16,
  runLabelNameLength: 63,
  runLabelLength: 200,
  /** Claims of one remote worker. */
  heldPerSession: 20_000,
  /** The greatest age of an event that a remote worker reports. */
  agoMs: 366 * 86_400_000,
  /** How far a run's next try can be put off by its handler. */
  postponedMs: 366 * 86_400_000,
  /** How often a run can be snoozed. */
  snoozes: 1_000,
  /** An older end or log line is recorded as of this long ago: the partition of that day exists from the beginning, and is kept. */
  writtenAgoMs: 86_400_000,
  /** The size of one request to the API; and of one that carries many runs, or a calendar's file. */
  requestBytes: 1024 * 1024,
  largeRequestBytes: 16 * 1024 * 1024,
  /** Runs enqueued by one request. */
  runsPerRequest: 2_000,
  /** Tasks of a bundle that one request plans or applies: each is a transaction, and the caller waits up to a minute. */
  tasksPerPlan: 2_000,
  /** Server-sent events that one server sends at once. */
  streams: 200,
  /** How old a sign-in may be that ends other sign-ins of its user. */
  freshSignInMs: 600_000,
  /** Event streams that one user may have. */
  streamsPerUser: 50,
  /** Live sessions of one worker key. */
  sessionsPerKey: 500,
  /** The largest number of any quota; and how far the waiting runs of a namespace are counted if only their bytes have a quota. */
  quota: 1_000_000_000_000,
  countedWaiting: 1_000_000,
  /** Tasks of a group or a namespace whose runs a list reads task by task; the runs of more tasks are read in order and tested. */
  tasksProbed: 100,
  /** The same for a list by source: of each task as many runs are read and tested as a statement may look at. */
  tasksProbedWithTests: 10,
  /** Unfinished runs, and ended ones of each outcome, that one statement of a list reads to find those that match. */
  liveRunsLookedAt: 500,
  endedRunsLookedAt: 2_000,
  /** For one answer: tasks whose last runs are listed, runs of each, and tasks that fire next. */
  recentTasks: 100,
  recentRuns: 100,
  comingTasks: 200,
  passwordLength: 1_000,
  /** The size of one secret's value. */
  secretBytes: 32 * 1024,
  /** A shorter value cannot be distinguished from other text. */
  secretLeastLength: 8,
  /** Secret values that a process has handed out, and redacts from what is written. */
  secretsRemembered: 1_000,
  /** Data keys that one transaction wraps again. */
  secretsAtOnce: 500,
  /** The length of the message of an error that a handler throws; a longer one keeps its beginning. */
  errorMessageLength: 2_000,
  /** The length of a message or a stack that a remote worker reports. */
  errorTextLength: 16 * 1024,
  /** One result of an MCP tool: its JSON; and within it one text, one JSON value of a user, and one list that has no pages. */
  mcpAnswerCharacters: 60_000,
  mcpTextCharacters: 2_000,
  mcpValueCharacters: 4_000,
  mcpListItems: 500,
  /** Items of one page, slots, and tasks of one simulation, in a result of an MCP tool. */
  mcpPageItems: 50,
  mcpSlots: 200,
  mcpSimulatedTasks: 50,
  /** Workers that one explanation of a run looks at. */
  countedWorkers: 2_000,
  /** Confirmations that an MCP server keeps at once, and how long each holds. */
  confirmations: 100,
  confirmationMs: 300_000,
} as const;
