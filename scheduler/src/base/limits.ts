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
  /** The name of a stored alarm rule; and how many of them the store keeps, since each check evaluates all. */
  alarmRuleNameLength: 100,
  alarmRules: 200,
  /** The length of the reason for a change. */
  reasonLength: 1_000,
  /** The length of a fingerprint, which identifies the reason of dead letters. */
  fingerprintLength: 100,
  keyLength: 200,
  /** The largest limit of a group: above, it would limit nothing. */
  groupRuns: 100_000,
  /** Shards of one run. */
  shards: 1_000,
  /** Upstream tasks of one task. */
  upstreamTasks: 100,
  /** The number of children of one run. */
  children: 10_000,
  /** Children that one statement creates, or that one poll of a remote worker requests. */
  childrenAtOnce: 1_000,
  /** A run's inputs in one answer to a remote worker: how many, and the bytes of their results and errors. */
  inputsPerPoll: 1_000,
  inputBytesPerPoll: 8 * 1024 * 1024,
  /** Groups of dead letters in one answer, the largest first; and the tasks that are named for each group. */
  deadGroups: 1_000,
  deadGroupTasks: 100,
  /** Grants of one user; and namespaces of one token. */
  grants: 1_000,
  /**
   * Task definitions cached in one process, about 1 to 2 kB each. The half that was used most recently is certainly cached; if there are
   * more tasks, others are read again.
   */
  definitionsKept: 250_000,
  lockNameLength: 200,
  /** Permits of one semaphore. */
  permits: 1_000,
  /** Holders and waiters of one lock name, on PostgreSQL. */
  lockLine: 10_000,
  cronTextLength: 256,
  /** A schedule in English; the longest cron expression gives a shorter text. */
  phraseLength: 2_000,
  /** The length of an RRULE with its date lines; and the number of dates that it adds, and that it leaves out. */
  ruleTextLength: 40_000,
  ruleDates: 1_000,
  /** COUNT of an RRULE: finding the last occurrence visits all of them. */
  ruleCount: 10_000,
  /** Holidays of one calendar: some 50 years of them, or 10 in which every weekend is listed. */
  calendarDays: 5_000,
  /**
   * A comparison of two versions of a calendar: how many tasks, how many days ahead, and how many slots of one task are compared and are
   * listed.
   */
  comparedTasks: 100,
  comparedDays: 366,
  comparedSlots: 2_000,
  comparedSlotsShown: 50,
  /** The size of a calendar's file; and the number of days that its rules give, counted before exclusions. */
  icsBytes: 1024 * 1024,
  icsOccurrences: 8_000,
  /** Milliseconds of uninterrupted work, for a calendar's file and for the check of a payload: at most a third of a session's timeout. */
  icsMs: 2_000,
  payloadCheckMs: 500,
  /** Blackout windows of one task. */
  blackoutWindows: 100,
  /** A slot is due at most this much after its nominal time by jitter. */
  jitterMs: 86_400_000,
  /** The delay between two attempts of a run: after a longer delay the next attempt could be at a time that no Date can express. */
  retryDelayMs: 366 * 86_400_000,
  /** The shortest period of a fixed rate: a horizon then holds a few hundred slots. */
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
  /** The last lines of stderr that a failed command's error quotes, as far as they fit into its message. */
  commandLastLines: 10,
  /** The time between SIGTERM and SIGKILL for a command, in milliseconds. */
  commandGraceMs: 10_000,
  /**
   * Bytes of an HTTP task's response that are read; the rest is not read. Even if each of these bytes is escaped in JSON, the result can be
   * stored.
   */
  httpBodyBytes: 32 * 1024,
  /** The length of an HTTP task's URL, and of each of its headers. */
  urlLength: 8_000,
  /** Bytes of one request of a remote worker, after decompression. */
  pollBytes: 16 * 1024 * 1024,
  /** How long a poll waits at most; short enough for proxies that close a connection after 30 s of silence. */
  pollWaitMs: 25_000,
  /** The silence after which a remote worker is presumed dead. */
  workerTimeoutMs: 60_000,
  /** The longest time before a run's due time at which a remote worker may claim it. */
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
  /** How far ahead a handler can postpone the next attempt of its run. */
  postponedMs: 366 * 86_400_000,
  /** How often a run can be snoozed. */
  snoozes: 1_000,
  /**
   * An older end or log line is recorded as of this long ago, because the partition of that day exists from the first start on, and is
   * kept.
   */
  writtenAgoMs: 86_400_000,
  /** The size of one request to the API; and of a request that carries many runs, or a calendar's file. */
  requestBytes: 1024 * 1024,
  largeRequestBytes: 16 * 1024 * 1024,
  /** Runs enqueued by one request. */
  runsPerRequest: 2_000,
  /** Tasks of a bundle that one request plans or applies: each is a transaction, and the caller waits up to a minute. */
  tasksPerPlan: 2_000,
  /** Event streams that one server sends at once. */
  streams: 200,
  /** The greatest age of a sign-in that may end other sign-ins of its user. */
  freshSignInMs: 600_000,
  /** Event streams that one user may have. */
  streamsPerUser: 50,
  /** Live sessions of one worker key. */
  sessionsPerKey: 500,
  /**
   * The largest value of any quota; and up to which number the waiting runs of a namespace are counted if only their bytes have a quota.
   */
  quota: 1_000_000_000_000,
  countedWaiting: 1_000_000,
  /** The most tasks of a group or a namespace for which a list is read task by task; for more tasks, runs are read in order and tested. */
  tasksProbed: 100,
  /** As `tasksProbed`, for a list by source, which has to read and test many runs of each task in one statement. */
  tasksProbedWithTests: 10,
  /** Unfinished runs, and ended runs of each outcome, that one statement of a list reads to find matching runs. */
  liveRunsLookedAt: 500,
  endedRunsLookedAt: 2_000,
  /** For one answer: tasks whose last runs are listed, runs of each task, and tasks that fire next. */
  recentTasks: 100,
  recentRuns: 100,
  comingTasks: 200,
  passwordLength: 1_000,
  /** The size of one secret's value. */
  secretBytes: 32 * 1024,
  /** A shorter secret could not be distinguished from other text in a log. */
  secretLeastLength: 8,
  /** Secret values that a process has handed out and redacts from its output. */
  secretsRemembered: 1_000,
  /** Data keys that one transaction rewraps. */
  secretsAtOnce: 500,
  /** The length of the message of a handler's error; a longer message is cut at its end. */
  errorMessageLength: 2_000,
  /** The length of a message or a stack that a remote worker reports. */
  errorTextLength: 16 * 1024,
  /**
   * One result of an MCP tool: its length as JSON; and within it the lengths of one text, of one JSON value of a user, and of one list
   * without pages.
   */
  mcpAnswerCharacters: 60_000,
  mcpTextCharacters: 2_000,
  mcpValueCharacters: 4_000,
  mcpListItems: 500,
  /** Items of one page, slots, and tasks of one simulation, in a result of an MCP tool. */
  mcpPageItems: 50,
  mcpSlots: 200,
  mcpSimulatedTasks: 50,
  /** Workers that one explanation of a run considers. */
  countedWorkers: 2_000,
  /** Confirmations that an MCP server keeps at once, and how long each is valid. */
  confirmations: 100,
  confirmationMs: 300_000,
} as const;
