/** Whether SMS may be sent to a number that is normalized. */
export type NumberRule = (number: string) => boolean;

/**
 * Of the prefixes that a number begins with the longest decides: `+49` allows, `!+49900` refuses. A
 * number with none of them is refused.
 */
export function createNumberRule(prefixes: readonly string[]): NumberRule {
  const allows = new Map(prefixes.map((prefix) => [prefix.replace('!', ''), prefix[0] !== '!']));
  const longest = Math.max(0, ...[...allows.keys()].map(({ length }) => length));
  return (number) => {
    for (let length = longest; length > 0; length -= 1) {
      const allowed = allows.get(number.slice(0, length));
      if (allowed !== undefined) return allowed;
    }
    return false;
  };
}
