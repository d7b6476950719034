import { DomainError, type Problem } from '../errors.ts';
import { nextTurn } from '../lib/in-turns.ts';
import { endOfString, maxJsonParts } from '../lib/json-extent.ts';
import { parseJsonBody } from './json.ts';

/** A body that is an object with one list, whose elements are read one by one. */
export type ListBody = {
  /** The name of the list. */
  member: string;
  /** Elements at most. */
  most: number;
  /** Of the body. */
  limitBytes: number;
};

const space = /[\t\n\r ]*/y;
/** Read before others have their turn. */
const lengthInTurn = 65_536;

/**
 * Reads `{ "member": [ … ] }` element by element, with turns for others: what a body may have at most holds
 * for each element by itself. Rejects with `invalid-input`; a problem's path names the element.
 */
export async function parseListBody(
  text: string,
  { member, most }: ListBody,
): Promise<Record<string, unknown[]>> {
  const elements: unknown[] = [];
  const opening = new RegExp(
    `[\\t\\n\\r ]*\\{[\\t\\n\\r ]*"${member}"[\\t\\n\\r ]*:[\\t\\n\\r ]*\\[`,
    'y',
  );
  if (!opening.test(text)) throw notAList(member);
  let at = skipSpace(text, opening.lastIndex);
  let turnAt = at;
  let isOver = text[at] === ']';
  while (!isOver) {
    const path = `/${member}/${elements.length}`;
    if (elements.length === most)
      throw refuse({ path: `/${member}`, message: `expected at most ${most}` });
    const end = endOfElement(text, at, path);
    elements.push(await parseElement(text.slice(at, end), path));
    at = skipSpace(text, end);
    isOver = text[at] === ']';
    if (!isOver && text[at] !== ',') throw notAList(member);
    if (!isOver) at = skipSpace(text, at + 1);
    if (at - turnAt < lengthInTurn) continue;
    turnAt = at;
    await nextTurn();
  }
  if (!/^[\t\n\r ]*\}[\t\n\r ]*$/.test(text.slice(at + 1, at + 1_000))) throw notAList(member);
  return { [member]: elements };
}

function skipSpace(text: string, at: number): number {
  space.lastIndex = at;
  space.test(text);
  return space.lastIndex;
}

async function parseElement(text: string, path: string): Promise<unknown> {
  try {
    return await parseJsonBody(text);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    const { problems, message } = error;
    if (problems.length > 0)
      throw refuse(...problems.map((one) => ({ ...one, path: path + one.path })));
    throw refuse({ path, message: message.replace(/^The body /, '').replace(/\.$/, '') });
  }
}

/** Where the element ends that begins at `start`; reads no further than an element may have parts. */
function endOfElement(text: string, start: number, path: string): number {
  let depth = 0;
  let parts = 0;
  for (let at = start; at < text.length; at += 1) {
    const char = text[at];
    if (char === '"') at = endOfString(text, at);
    else if (char === '{' || char === '[') depth += 1;
    else if (depth === 0 && (char === ',' || char === ']')) return at;
    else if (char === '}' || char === ']') depth -= 1;
    if (depth < 0) break;
    if ((char === '{' || char === '[' || char === ',') && (parts += 1) > maxJsonParts)
      throw refuse({ path, message: `has more than ${maxJsonParts} {, [ and , beside its texts` });
  }
  throw refuse({ path, message: 'is not JSON' });
}

const notAList = (member: string) =>
  new DomainError('invalid-input', `The body is not { "${member}": […] } in JSON.`);

const refuse = (...problems: Problem[]) =>
  new DomainError('invalid-input', 'The request is not valid.', { problems });
