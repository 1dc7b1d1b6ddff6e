import {
  IconActivity,
  IconBellRinging,
  IconCalendar,
  IconCalendarTime,
  IconHeartbeat,
  IconHistory,
  IconKey,
  IconListDetails,
  IconMailX,
  IconPlayerPlay,
  IconServer2,
  IconSettings,
  IconSitemap,
  IconStack2,
} from "@tabler/icons-react";
import type { Role } from "carillon/access";
import type { Message } from "../messages/words.ts";

export interface Screen {
  to:
    | "/"
    | "/timeline"
    | "/tasks"
    | "/flow"
    | "/runs"
    | "/dead-letters"
    | "/operations"
    | "/alarms"
    | "/workers"
    | "/nodes"
    | "/calendars"
    | "/audit"
    | "/access"
    | "/settings";
  name: Message;
  icon: typeof IconActivity;
  /** The key that opens the screen, pressed after g. */
  key: string;
  least: Role;
  /** True if the screen shows data of the whole cluster, so that its role is needed for all namespaces. */
  everywhere?: true;
}

/** The screens, in the groups of the navigation. */
export const screens: Screen[][] = [
  [
    { to: "/", name: "screen.overview", icon: IconHeartbeat, key: "o", least: "viewer" },
    { to: "/timeline", name: "screen.timeline", icon: IconCalendarTime, key: "f", least: "viewer" },
    { to: "/tasks", name: "screen.tasks", icon: IconListDetails, key: "t", least: "viewer" },
    { to: "/flow", name: "screen.flow", icon: IconSitemap, key: "l", least: "viewer" },
    { to: "/runs", name: "screen.runs", icon: IconPlayerPlay, key: "r", least: "viewer" },
    { to: "/dead-letters", name: "screen.dead", icon: IconMailX, key: "d", least: "viewer" },
    { to: "/operations", name: "screen.operations", icon: IconStack2, key: "p", least: "viewer" },
    { to: "/alarms", name: "screen.alarms", icon: IconBellRinging, key: "m", least: "viewer" },
  ],
  [
    { to: "/workers", name: "screen.workers", icon: IconActivity, key: "w", least: "viewer" },
    { to: "/nodes", name: "screen.nodes", icon: IconServer2, key: "n", least: "viewer", everywhere: true },
  ],
  [
    { to: "/calendars", name: "screen.calendars", icon: IconCalendar, key: "c", least: "viewer" },
    { to: "/audit", name: "screen.audit", icon: IconHistory, key: "u", least: "admin", everywhere: true },
    { to: "/access", name: "screen.access", icon: IconKey, key: "a", least: "viewer" },
    { to: "/settings", name: "screen.settings", icon: IconSettings, key: "s", least: "viewer" },
  ],
];
