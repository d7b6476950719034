import { DomainError, type Problem } from '../errors.ts';

// A large array of rubbish must not be answered with a larger one.
const maxProblems = 100;

/** Throws `invalid-input` with what is larger than it may be, if anything is. */
export function refuseOversized(problems: Problem[]): void {
  if (problems.length === 0) return;
  const message = 'The request has something larger than it may be.';
  throw new DomainError('invalid-input', message, { problems: problems.slice(0, maxProblems) });
}
