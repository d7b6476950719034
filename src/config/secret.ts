import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Environment } from './environment.ts';
import { minSecretBytes } from './keys.ts';
import { readOrMakePrivateFile, readPrivateFile } from '../lib/private-file.ts';
import { StartError } from '../start-error.ts';
import { messageOf } from '../lib/thrown.ts';

const howToMake = 'make one with `openssl rand -base64 48` and keep it';

/**
 * The secret that the environment gives, or null where the data directory's own is to be used. What
 * is wrong is added to `problems`; a secret itself is never repeated.
 */
export async function readSecret(env: Environment, problems: string[]): Promise<string | null> {
  if (env.SECRET !== undefined && env.SECRET_FILE !== undefined)
    problems.push('SECRET and SECRET_FILE: expected only one of them.');
  const secret = env.SECRET ?? (await readSecretFile('SECRET_FILE', env.SECRET_FILE, problems));
  checkLength(env.SECRET === undefined ? 'SECRET_FILE' : 'SECRET', secret, problems);
  if (secret !== undefined) return secret;
  if (env.DATABASE_URL !== undefined && env.SECRET_FILE === undefined)
    problems.push(
      `SECRET: required with DATABASE_URL, or SECRET_FILE: the one this database is used with, or for a new database ${howToMake}.`,
    );
  return null;
}

/** The secret before that one, null where none is given. What is wrong is added to `problems`. */
export async function readPreviousSecret(
  env: Environment,
  problems: string[],
): Promise<string | null> {
  const { SECRET_PREVIOUS: given, SECRET_PREVIOUS_FILE: file } = env;
  if (given !== undefined && file !== undefined)
    problems.push('SECRET_PREVIOUS and SECRET_PREVIOUS_FILE: expected only one of them.');
  const secret = given ?? (await readSecretFile('SECRET_PREVIOUS_FILE', file, problems));
  checkLength(given === undefined ? 'SECRET_PREVIOUS_FILE' : 'SECRET_PREVIOUS', secret, problems);
  return secret ?? null;
}

/** Where the secret is looked for, for messages to people. */
export function placeOfSecret({ SECRET, SECRET_FILE }: Environment, dataDir: string): string {
  if (SECRET !== undefined) return 'SECRET';
  return SECRET_FILE === undefined ? secretFileIn(dataDir) : `SECRET_FILE ${SECRET_FILE}`;
}

/** The data directory's own secret, or null where it has none. Throws a StartError. */
export async function findOwnSecret(dataDir: string): Promise<string | null> {
  const file = secretFileIn(dataDir);
  try {
    const secret = await readPrivateFile(file);
    return secret === null ? null : checkOwn(file, secret);
  } catch (error) {
    if (error instanceof StartError) throw error;
    const reason = messageOf(error);
    throw new StartError(`${file}: cannot be read (${reason}).`, { cause: error });
  }
}

/** The data directory's own secret, made where there is none; nobody but its owner can read it. */
export async function readOrMakeSecret(dataDir: string): Promise<string> {
  const file = secretFileIn(dataDir);
  const make = () => randomBytes(48).toString('base64');
  return checkOwn(file, await readOrMakePrivateFile(file, make));
}

/** Where the data directory's own secret is. */
export function secretFileIn(dataDir: string): string {
  return join(dataDir, 'secret');
}

function checkOwn(file: string, secret: string): string {
  if (Buffer.byteLength(secret) < minSecretBytes)
    throw new StartError(
      `${file}: expected ${minSecretBytes} bytes or more; put it back from a backup, or ${howToMake} there.`,
    );
  return secret;
}

async function readSecretFile(
  name: string,
  file: string | undefined,
  problems: string[],
): Promise<string | undefined> {
  if (file === undefined) return undefined;
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    const reason = messageOf(error);
    problems.push(`${name}: cannot be read (${reason}).`);
    return undefined;
  }
}

function checkLength(name: string, secret: string | undefined, problems: string[]): void {
  if (secret !== undefined && Buffer.byteLength(secret) < minSecretBytes)
    problems.push(`${name}: expected ${minSecretBytes} bytes or more; ${howToMake}.`);
}
