import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { decodeUtf8, findJsonError, tellJsonError } from '../lib/json.ts';

/** An object of settings, or what is wrong with the file, without its name. */
export type Laid = { value: object } | { problem: string };

const modules = ['.ts', '.mts', '.js', '.mjs'];

/** Reads a file of settings that is laid over the defaults: JSON, or a module whose default export it is. */
export async function readLaid(file: string): Promise<Laid> {
  try {
    // Read in any case: what is no file is then the same problem for both kinds.
    const bytes = await readFile(file);
    if (file.endsWith('.json')) return readJson(decodeUtf8(bytes));
    if (!modules.includes(extname(file))) return { problem: 'expected a .json or a .ts file' };
    return await readModule(file);
  } catch (error) {
    return { problem: whyUnreadable(error as NodeJS.ErrnoException) };
  }
}

function readJson(text: string | null): Laid {
  if (text === null) return { problem: 'expected UTF-8, found bytes that are none' };
  const error = findJsonError(text);
  if (error === null) return toLaid(JSON.parse(text));
  return { problem: `no JSON at ${tellJsonError(error)}` };
}

async function readModule(file: string): Promise<Laid> {
  try {
    const loaded = (await import(pathToFileURL(file).href)) as object;
    if (!('default' in loaded)) return { problem: 'expected a default export, found none' };
    return toLaid(loaded.default);
  } catch (error) {
    const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    return { problem: `cannot be loaded (${message.replaceAll(/\s+/g, ' ').trim()})` };
  }
}

function toLaid(value: unknown): Laid {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { value };
  const found = Array.isArray(value) ? 'a list' : value === null ? 'null' : `a ${typeof value}`;
  return { problem: `expected an object of settings, found ${found}` };
}

const unreadable: Record<string, string> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EISDIR: 'expected a file, found a directory',
  EACCES: 'this user may not read it',
};

function whyUnreadable({ code = '', message }: NodeJS.ErrnoException): string {
  const why = Object.hasOwn(unreadable, code) ? unreadable[code] : undefined;
  return why ?? `cannot be read (${message})`;
}
