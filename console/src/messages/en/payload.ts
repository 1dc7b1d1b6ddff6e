export const payloadEn = {
  "payload.form": "Form",
  "payload.add": "Add to {name}",
  "payload.without": "Remove {name} {n}",
  "refusal.PAYLOAD_INVALID": "The payload is not what the task takes.",
  "payload.missing": "This is needed.",
  "payload.from": "Payload from",
  "payload.ofSchedule": "the schedule",
  "payload.ofNone": "nothing: begin anew",
  "payload.ofRun": "run {run}",
  "payload.schedules": "Other schedules of the task",
  "payload.runs": "Runs",
  "refusal.PAYLOAD_OUTSIDE": "This payload is encrypted or kept outside the store, so it cannot be taken here.",
} as const;
