/**
 * What a schema's library says is wrong, as the schemas' own messages are: what was expected, and what was
 * found. "Invalid input: expected number, received undefined" says neither that it is missing.
 */
export function describeIssue(message: string): string {
  return message
    .replace(/^(?:Invalid (?:input|option)|Too (?:small|big)): (?=expected )/, '')
    .replace(/, received undefined$/, ', found nothing')
    .replace(/, received (?=\S+$)/, ', found ')
    .replaceAll('"|"', '", "');
}
