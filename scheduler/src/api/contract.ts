/**
 * The table of all routes of the HTTP API, version 1. docs/reference/api.md explains their use; the OpenAPI page is generated from this
 * table.
 */
import type { z } from "zod";
import { accessRoutes } from "./contract/access.ts";
import { alarmRoutes } from "./contract/alarms.ts";
import { auditRoutes } from "./contract/audit.ts";
import { bundleRoutes } from "./contract/bundles.ts";
import { calendarRoutes } from "./contract/calendars.ts";
import { clusterRoutes } from "./contract/cluster.ts";
import { eventRoutes } from "./contract/events.ts";
import { flowRoutes } from "./contract/flow.ts";
import { hookRoutes } from "./contract/hooks.ts";
import { operationRoutes } from "./contract/operations.ts";
import { quotaRoutes } from "./contract/quotas.ts";
import type { RouteShape } from "./contract/route.ts";
import { runRoutes } from "./contract/runs.ts";
import { secondFactorRoutes } from "./contract/second-factor.ts";
import { secretRoutes } from "./contract/secrets.ts";
import { taskRoutes } from "./contract/tasks.ts";
import { timelineRoutes } from "./contract/timeline.ts";

export const routes = {
  ...taskRoutes,
  ...bundleRoutes,
  ...timelineRoutes,
  ...runRoutes,
  ...flowRoutes,
  ...operationRoutes,
  ...calendarRoutes,
  ...clusterRoutes,
  ...eventRoutes,
  ...quotaRoutes,
  ...accessRoutes,
  ...secondFactorRoutes,
  ...auditRoutes,
  ...secretRoutes,
  ...alarmRoutes,
  ...hookRoutes,
} as const;

export type Routes = typeof routes;
export type RouteId = keyof Routes;
export const routeIds = Object.keys(routes) as RouteId[];

/** Returns a route as the type that all routes share. */
export const shapeOf = (routeId: RouteId): RouteShape => routes[routeId];

type Part<Shape, Name extends string, Side extends "input" | "output"> = Shape extends { [N in Name]: infer Schema }
  ? Schema extends z.ZodType
    ? Side extends "input"
      ? z.input<Schema>
      : z.output<Schema>
    : unknown
  : unknown;

/** The fields that the client's caller passes: those of the path, the query and the body, in one object. */
export type Given<Id extends RouteId> = Fields<"input">[Id];

/** The fields of `Given` as the server receives them: validated and with defaults filled in. */
export type Read<Id extends RouteId> = Fields<"output">[Id];

/**
 * The fields of each route by its id. This is a table because for an id that is not known yet, the compiler would otherwise combine the
 * path, query and body types of all routes, which are too many combinations.
 */
type Fields<Side extends "input" | "output"> = {
  [Id in RouteId]: Flat<
    Part<Routes[Id], "params", Side> & Part<Routes[Id], "query", Side> & Part<Routes[Id], "body", Side>
  >;
};

/** Flattens an intersection of several object types into one object type. */
type Flat<Fields> = { [Name in keyof Fields]: Fields[Name] };

export type Answer<Id extends RouteId> = Routes[Id] extends { answer: infer Schema }
  ? Schema extends z.ZodType
    ? z.output<Schema>
    : undefined
  : never;

export type StreamId = { [Id in RouteId]: Routes[Id] extends { event: z.ZodType } ? Id : never }[RouteId];
export type Event<Id extends StreamId> = Routes[Id] extends { event: infer Schema extends z.ZodType }
  ? z.output<Schema>
  : never;
