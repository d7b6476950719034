/** A command's arguments after its name, at least and at most. */
type Takes = [number, number];

export function asksForHelp(args: string[]): boolean {
  return args.includes('--help') || args.includes('-h');
}

/**
 * What is wrong with `npm run PROGRAM -- NAME ARGUMENT…`, in a sentence; null where it can be run. `takes` says
 * how many arguments each command has.
 */
export function findWrongArgument(
  [name, ...rest]: string[],
  takes: Record<string, Takes>,
): string | null {
  const option = [name, ...rest].find((arg) => /^--?[a-z]/i.test(arg ?? ''));
  if (option !== undefined) return `Unknown option '${option}'.`;
  if (name === undefined) return 'Expected a command.';
  const [least, most] = (Object.hasOwn(takes, name) && takes[name]) || [-1, -1];
  if (least < 0) return `There is no command "${name}".`;
  if (rest.length < least) return `${name}: an argument is missing.`;
  if (rest.length > most) return `${name}: "${rest.slice(most).join(' ')}" is too much.`;
  return null;
}
