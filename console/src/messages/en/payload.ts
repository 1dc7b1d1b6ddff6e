export const payloadEn = {
  "payload.form": "Form",
  "payload.add": "Add to {name}",
  "payload.without": "Remove {name} {n}",
  "refusal.PAYLOAD_INVALID": "The payload is not what the task takes.",
  "payload.missing": "This is needed.",
} as const;
