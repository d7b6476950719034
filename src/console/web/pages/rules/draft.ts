import { now } from '../../app/now.ts';
import { accountOf, keptPrefix } from '../../app/session.ts';
import { readRule, type Rule } from './document.ts';

/** What somebody has changed and not saved; `tag`: the version that it began with, empty for a new rule. */
export type Draft = { rule: Rule; tag: string; ts: number };

const prefixOf = () => `${keptPrefix(accountOf()?.accountAuthUuid ?? '')}rule/`;

/** The draft of a rule in this browser; null if there is none. `id`: its uuid, or that of a new rule: `new-1`. */
export function readDraft(id: string): Draft | null {
  try {
    const kept = JSON.parse(localStorage.getItem(prefixOf() + id) ?? 'null') as Draft | null;
    const read = readRule(kept?.rule);
    return kept && 'rule' in read ? { ...kept, rule: read.rule } : null;
  } catch {
    return null;
  }
}

/** Keeps a draft over a reload, until somebody signs out; null: there is none any more. */
export function keepDraft(id: string, draft: Omit<Draft, 'ts'> | null): void {
  // If the browser refuses storage, the draft lasts as long as the page.
  try {
    if (draft === null) localStorage.removeItem(prefixOf() + id);
    else if (!isKept(id, draft))
      localStorage.setItem(prefixOf() + id, JSON.stringify({ ...draft, ts: now() }));
  } catch {}
}

/** Opening a draft changes nothing in it, nor when it was changed. */
function isKept(id: string, { rule, tag }: Omit<Draft, 'ts'>): boolean {
  const kept = readDraft(id);
  return kept?.tag === tag && JSON.stringify(kept.rule) === JSON.stringify(rule);
}

/** All drafts of the account in this browser, by id. */
export function listDrafts(): Map<string, Draft> {
  const drafts = new Map<string, Draft>();
  const prefix = prefixOf();
  try {
    for (const key of Object.keys(localStorage).toSorted()) {
      const id = key.slice(prefix.length);
      const draft = key.startsWith(prefix) ? readDraft(id) : null;
      if (draft) drafts.set(id, draft);
    }
  } catch {}
  return drafts;
}

export const isNew = (id: string): boolean => id.startsWith('new-');

/** Keeps a new rule as a draft; gives its id. */
export function startDraft(rule: Rule): string {
  const taken = listDrafts();
  let number = 1;
  while (taken.has(`new-${number}`)) number += 1;
  const id = `new-${number}`;
  keepDraft(id, { rule, tag: '' });
  return id;
}
