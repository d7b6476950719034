const pattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Whether a text is a UUID in lower case, as the database writes one (RFC 9562 section 4), of any version. */
export function isUuid(text: string): boolean {
  return pattern.test(text);
}
