const format = new Intl.DateTimeFormat('sv-SE', {
  timeZone: 'UTC',
  dateStyle: 'short',
  timeStyle: 'medium',
});

/** "2026-11-23 12:00:00 UTC": for whoever asks by a program, in the time zone of none of them. */
export const describeInstant = (ts: number): string => `${format.format(ts)} UTC`;
