/** What an error says of itself beside its message; never the values that a statement or a command had. */
const told = [
  'code',
  'errno',
  'syscall',
  'address',
  'port',
  'path',
  'severity',
  'schema',
  'table',
  'column',
  'constraint',
  'reason',
] as const;

/** Causes of causes; more are a circle or of no use. */
const deepest = 5;

export type DescribedError = Record<string, unknown> & {
  message: string;
  cause?: DescribedError;
};

/**
 * An error as a line has it: its type, message, stack and code, and its causes. Other members are left
 * out: a database's `detail` and a Redis command's arguments hold what people have stored.
 */
export function describeError(error: unknown, depth = 0): DescribedError {
  if (!(error instanceof Error)) return { message: String(error) };
  const { name, message, stack, cause } = error;
  const parts: unknown = 'errors' in error ? error.errors : undefined;
  const members = Object.entries(error).filter(([key]) => told.some((one) => one === key));
  return {
    type: name,
    message,
    stack,
    ...Object.fromEntries(members),
    // Of an AggregateError, such as one for each address of a name.
    ...(Array.isArray(parts) && depth < deepest
      ? { errors: parts.map((part: unknown) => describeError(part, depth + 1)) }
      : {}),
    ...(cause === undefined || depth === deepest ? {} : { cause: describeError(cause, depth + 1) }),
  };
}
