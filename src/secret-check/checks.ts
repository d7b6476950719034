/** Check values of what a process was given; null where there is none. */
export type Given = { current: string | null; previous: string | null };

/** Whether the database knows one of them: with the previous one a new one is welcome. */
export function isKnown(checks: string[], { current, previous }: Given): boolean {
  return [current, previous].some((check) => check !== null && checks.includes(check));
}

/**
 * Whether a process may go on with them. Where nothing depends on a secret any is good. A database of
 * a version that noted none takes what was given, never one that would have to be made.
 */
export function isAllowed(checks: string[], given: Given, isInUse: boolean): boolean {
  if (!isInUse || isKnown(checks, given)) return true;
  return checks.length === 0 && given.current !== null;
}

/**
 * The check values that the database is to keep for a process that was allowed, newest first. The one
 * before the newest stays for as long as some process still starts with SECRET_PREVIOUS; the first
 * that starts with the newest alone ends the change.
 */
export function nextChecks(checks: string[], current: string, previous: string | null): string[] {
  const [newest] = checks;
  if (previous === null || previous === current) {
    if (newest === current || !checks.includes(current)) return [current];
    // This process is still to be changed: the newer secret is not its to end.
    return checks;
  }
  if (!isKnown(checks, { current, previous })) return [current, previous];
  // With SECRET_PREVIOUS the newest, whoever changed it goes back to the one before. Otherwise a
  // secret that is known keeps its place, and a previous one that is not known (a change that has
  // ended, or has not begun) is not let in by this.
  if (checks.includes(current) && newest !== previous) return checks;
  return [current, ...checks.filter((check) => check !== current)];
}
