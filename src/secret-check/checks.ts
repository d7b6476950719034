/** Check values of what a process was given; null where there is none. */
export type GivenChecks = { current: string | null; previous: string | null };

/** Whether the database knows one of them: beside a known previous secret, a new one is accepted. */
export function isKnown(checks: string[], { current, previous }: GivenChecks): boolean {
  return [current, previous].some((check) => check !== null && checks.includes(check));
}

/**
 * Whether a process may start with them. Where nothing depends on a secret, any will do. A database of
 * a version that stored no check value accepts a given secret, never one that would have to be made.
 */
export function isAllowed(checks: string[], given: GivenChecks, isInUse: boolean): boolean {
  if (!isInUse || isKnown(checks, given)) return true;
  return checks.length === 0 && given.current !== null;
}

/**
 * The check values that a start would end although the database keeps them: those of a change that it finishes, as its
 * secret is the newest and comes without SECRET_PREVIOUS.
 */
export function endedChecks(checks: string[], { current, previous }: GivenChecks): string[] {
  if (current === null) return [];
  const kept = nextChecks(checks, current, previous);
  return checks.includes(current) ? checks.filter((check) => !kept.includes(check)) : [];
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
    // This process still has the older secret: it must not end the newer one.
    return checks;
  }
  if (!isKnown(checks, { current, previous })) return [current, previous];
  // SECRET_PREVIOUS is the newest: the change is being undone. Otherwise a known secret keeps its place,
  // and an unknown previous one (its change has ended, or has not begun) is not added.
  if (checks.includes(current) && newest !== previous) return checks;
  return [current, ...checks.filter((check) => check !== current)];
}
