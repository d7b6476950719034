/**
 * The advisory lock between ingest and the removal of devices: every ingest transaction holds it
 * shared before it looks whether its devices exist; a removal takes it exclusively for the moment
 * in which the device's row goes. What is stored afterwards cannot belong to a removed device.
 */
export const ingestLock = 7201;

/** Held by the process that clears what removals of devices left behind: one at a time does. */
export const purgeLock = 7206;

/** Held by the process that does some devices of a job. */
export const jobsLock = 7212;
