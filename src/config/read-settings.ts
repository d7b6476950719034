import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { readLaid } from './read-json-file.ts';
import { Settings } from './settings.ts';
import { describeIssue } from '../lib/issue-message.ts';

/**
 * Lays the user's settings over the defaults. What is wrong is added to `problems`, and null given
 * where nothing can be made of it.
 */
export async function readSettings(
  configDir: string,
  configFile: string | undefined,
  problems: string[],
): Promise<Settings | null> {
  const { default: defaults } = (await import(
    pathToFileURL(join(configDir, 'default.ts')).href
  )) as { default: unknown };
  const file = configFile ? resolve(configFile) : await findLocalFile(configDir);
  if (file === null) return takeDailyQuota(Settings.parse(followRegistration(defaults, {})));
  const local = await readLaid(file);
  if ('problem' in local) {
    problems.push(`${file}: ${local.problem}.`);
    return null;
  }
  const parsed = Settings.safeParse(followRegistration(defaults, local.value));
  if (parsed.success) return takeDailyQuota(parsed.data);
  for (const { path, message } of parsed.error.issues)
    problems.push(`${file}: ${path.join('.') || 'the whole'}: ${describeIssue(message)}.`);
  return null;
}

/** Closed registration has quotas of its own beneath those that the user sets. */
function followRegistration(defaults: unknown, local: unknown): unknown {
  const laid = layOver(defaults, local);
  if (!isObject(laid) || !isObject(laid['accounts'])) return laid;
  if (laid['accounts']['openRegistration'] !== false) return laid;
  return layOver(layOver(defaults, { quotas: laid['quotasWhereClosed'] }), local);
}

/** An older name of `quotas.messagesPerDay`. */
function takeDailyQuota(settings: Settings): Settings {
  const { dailyQuota } = settings.notifications;
  if (dailyQuota === undefined) return settings;
  return { ...settings, quotas: { ...settings.quotas, messagesPerDay: dailyQuota } };
}

async function findLocalFile(configDir: string): Promise<string | null> {
  for (const name of ['local.json', 'local.ts']) {
    const path = join(configDir, name);
    if (await stat(path).catch(() => null)) return path;
  }
  return null;
}

/** Objects are merged member by member; anything else, lists too, replaces what was there. */
function layOver(base: unknown, over: unknown): unknown {
  if (!isObject(base) || !isObject(over)) return over === undefined ? base : over;
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(over)) merged[key] = layOver(base[key], value);
  return merged;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
