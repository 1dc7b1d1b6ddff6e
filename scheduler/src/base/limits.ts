/** Every bound of the project, with its unit in its name. */
export const limits = {
  /** One payload or result, as UTF-8 JSON. */
  payloadBytes: 256 * 1024,
  /** Of a payload, a result, or anything else that is kept as JSON: what is deeper, some reader has no stack for. */
  jsonDepth: 200,
  taskNameLength: 200,
  groupNameLength: 100,
  nodeNameLength: 100,
  calendarNameLength: 100,
  secretNameLength: 100,
  /** Why something was changed. */
  reasonLength: 1_000,
  /** Of what stands for the reason of dead letters. */
  fingerprintLength: 100,
  keyLength: 200,
  /** The largest limit of a group: above, it would limit nothing. */
  groupRuns: 100_000,
  /** Runs that one run is split into. */
  shards: 1_000,
  /** That one task comes after. */
  upstreamTasks: 100,
  /** Of one run. */
  children: 10_000,
  /** That one statement makes, or one poll of a remote worker asks for. */
  childrenAtOnce: 1_000,
  /** Of what a run comes from, in one answer to a remote worker: so many, and so much of their results and errors. */
  inputsPerPoll: 1_000,
  inputBytesPerPoll: 8 * 1024 * 1024,
  /** Reasons of dead letters in one answer, the largest; and the tasks that are named of each. */
  deadGroups: 1_000,
  deadGroupTasks: 100,
  /** Of one user; and namespaces of one token. */
  grants: 1_000,
  /** In the memory of one process, some 1 to 2 kB each; half of them are sure to be there, and those of more tasks are read anew. */
  definitionsKept: 250_000,
  lockNameLength: 200,
  /** Of one semaphore. */
  permits: 1_000,
  /** Who hold or wait for one name, on PostgreSQL. */
  lockLine: 10_000,
  cronTextLength: 256,
  /** A schedule said in English; what a cron of its greatest length is told as is shorter. */
  phraseLength: 2_000,
  /** An RRULE with its lines of dates; and the dates that it adds, or leaves out, as a list each. */
  ruleTextLength: 40_000,
  ruleDates: 1_000,
  /** COUNT of an RRULE: its occurrences are gone through to find the last. */
  ruleCount: 10_000,
  /** Holidays of one calendar: some 50 years of them, or 10 in which every weekend is listed. */
  calendarDays: 5_000,
  /** A comparison of two versions of a calendar: tasks; days ahead; slots of one task that are compared, and that are listed. */
  comparedTasks: 100,
  comparedDays: 366,
  comparedSlots: 2_000,
  comparedSlotsShown: 50,
  /** A calendar's file; and what its rules may give, counted before anything is left out. */
  icsBytes: 1024 * 1024,
  icsOccurrences: 8_000,
  /** In one piece, while nothing else goes on, a third of a session's timeout at most: for a calendar's file, and for a payload. */
  icsMs: 2_000,
  payloadCheckMs: 500,
  /** Windows of one task. */
  blackoutWindows: 100,
  /** A slot is due at most this much after its nominal time by jitter. */
  jitterMs: 86_400_000,
  /** Between two tries of a run: with any more, the next may have no date that could be shown. */
  retryDelayMs: 366 * 86_400_000,
  /** Of a fixed rate: a horizon then holds some hundred slots. */
  shortestPeriodMs: 100,
  /** No slot is planned after this year: a cron that next fires later ends with an error. */
  lastYear: 2200,
  /** A crontab to import; the largest that cron itself would read is far below. */
  crontabBytes: 1024 * 1024,
  /** A file of tasks, or an export of another scheduler's. */
  taskFileBytes: 8 * 1024 * 1024,
  /** Of one state, for metrics; a figure of this size means that or more. */
  countedRuns: 100_000,
  /** Looked at in one simulation. */
  simulatedSlots: 1_000_000,
  /** Looked at for one timeline of a fleet, its days, and its tasks that one answer tells. */
  timelineSlots: 300_000,
  timelineDays: 14,
  timelineTasks: 200,
  /** Slots of one backfill; looked at for it in one piece, while nothing else goes on. */
  backfillSlots: 10_000_000,
  backfillSlotsAtOnce: 2_000,
  /** Of a task's payload schema, as JSON. */
  payloadSchemaLength: 32 * 1024,
  crontabLineLength: 16 * 1024,
  /** One line of a command's output; the rest of the line is cut and marked. */
  commandLineBytes: 16 * 1024,
  /** All output of one command; the rest is read, counted and thrown away. */
  commandOutputBytes: 4 * 1024 * 1024,
  /** The last lines of stderr that a failed command's error quotes, as far as its message has room for them. */
  commandLastLines: 10,
  /** From SIGTERM to SIGKILL. */
  commandGraceMs: 10_000,
  /** Of an HTTP task's answer; the rest is not read. As JSON, escaped at its worst, it still is a result that can be kept. */
  httpBodyBytes: 32 * 1024,
  /** Of an HTTP task's URL, and of each of its headers. */
  urlLength: 8_000,
  /** One request of a remote worker, unpacked. */
  pollBytes: 16 * 1024 * 1024,
  /** How long a poll waits at most; short enough for the proxies that end what is silent for 30 s. */
  pollWaitMs: 25_000,
  /** The silence after which a remote worker is dead. */
  workerTimeoutMs: 60_000,
  /** How far ahead of its time a remote worker may claim. */
  pollAheadMs: 60_000,
  /** Claims, verdicts or log lines in one poll. */
  runsPerPoll: 2_000,
  /** Of one remote worker. */
  labels: 32,
  /** Claims of one remote worker. */
  heldPerSession: 20_000,
  /** What a remote worker tells of cannot be older. */
  agoMs: 366 * 86_400_000,
  /** What ended, or was logged, before is told as of then: the day before has its partition from the beginning, and keeps it. */
  writtenAgoMs: 86_400_000,
  /** One request to the API; and one that carries many runs, or a calendar's file. */
  requestBytes: 1024 * 1024,
  largeRequestBytes: 16 * 1024 * 1024,
  /** Runs enqueued by one request. */
  runsPerRequest: 2_000,
  /** Tasks of a bundle that one request plans or applies: each is a transaction, and whoever asks waits for a minute. */
  tasksPerPlan: 2_000,
  /** Server-sent events that one server sends at once. */
  streams: 200,
  /** Of these, the streams that one user may have. */
  streamsPerUser: 50,
  /** Live sessions of one worker key. */
  sessionsPerKey: 500,
  /** The largest number of any quota; and what waits of a namespace is counted so far where only its bytes have one. */
  quota: 1_000_000_000_000,
  countedWaiting: 1_000_000,
  /** Of one answer: tasks whose last runs are told, runs of each, and tasks that fire next. */
  recentTasks: 100,
  recentRuns: 100,
  comingTasks: 200,
  passwordLength: 1_000,
  /** Of one secret's value. */
  secretBytes: 32 * 1024,
  /** A shorter value cannot be told from other text. */
  secretLeastLength: 8,
  /** Values that a process has handed out, and takes out of what is written. */
  secretsRemembered: 1_000,
  /** Data keys that one transaction wraps anew. */
  secretsAtOnce: 500,
  /** Of what a handler throws; what is longer is kept from its beginning. */
  errorMessageLength: 2_000,
  /** A message or a stack that a remote worker tells. */
  errorTextLength: 16 * 1024,
} as const;
