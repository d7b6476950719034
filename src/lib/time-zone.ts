/** Whether it is a name of the IANA database that this machine knows, such as Europe/Berlin. */
export function isTimeZone(name: string): boolean {
  // An offset such as +02:00 is taken too, and knows no summer.
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}
