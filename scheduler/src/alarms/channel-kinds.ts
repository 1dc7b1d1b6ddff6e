/** The kinds of channels to which alarms can be sent. */
export const channelKindNames = [
  "webhook",
  "mail",
  "slack",
  "teams",
  "dingtalk",
  "feishu",
  "wecom",
  "telegram",
  "pagerduty",
  "opsgenie",
  "command",
] as const;
export type ChannelKind = (typeof channelKindNames)[number];
