import { stateOf, states } from './error-kind.ts';
import { StartError } from '../start-error.ts';

/**
 * Gives a refusal of PostgreSQL that the role's owner can mend (42501: no right, or not the owner) as
 * a StartError; any other error as it is.
 */
export function explainMissingRight(error: unknown): unknown {
  if (!(error instanceof Error) || stateOf(error) !== states.insufficientPrivilege) return error;
  return new StartError(
    `DATABASE_URL: its role may not do there what the service needs (${error.message}): let it own the tables, or give it the rights that docs/starting.md lists.`,
    { cause: error },
  );
}
