/**
 * The entry point carillon/slots: computes when a slot runs under its task's calendar and blackouts. Pure functions that also work in
 * browsers.
 */
export { judgedSlot } from "./coming-slots.ts";
