import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { bundle } from '../../src/console/build/bundle.ts';
import { de } from '../../src/console/web/text/de.ts';
import { changes as changesDe } from '../../src/console/web/text/de/changes.ts';
import { map as mapDe } from '../../src/console/web/text/de/map.ts';
import { profiles as profilesDe } from '../../src/console/web/text/de/profiles.ts';
import { record as recordDe } from '../../src/console/web/text/de/record.ts';
import { rules as rulesDe } from '../../src/console/web/text/de/rules.ts';
import { en } from '../../src/console/web/text/en.ts';
import { changes as changesEn } from '../../src/console/web/text/en/changes.ts';
import { map as mapEn } from '../../src/console/web/text/en/map.ts';
import { profiles as profilesEn } from '../../src/console/web/text/en/profiles.ts';
import { record as recordEn } from '../../src/console/web/text/en/record.ts';
import { rules as rulesEn } from '../../src/console/web/text/en/rules.ts';

const kilobyte = 1_000;

test('the page stays small', async () => {
  const files = await bundle();
  const page = files.find(({ name }) => name === 'index.html')?.content ?? '';
  const scripts = files.filter(({ name }) => name.endsWith('.js'));
  const sizeOf = (of: typeof files) =>
    of.map(({ content }) => gzipSync(content, { level: 9 }).length).reduce((a, b) => a + b, 0);
  // A reader loads one of them.
  const languages = scripts.filter(({ name }) => /^(en|de)-/.test(name));
  expect(languages).toHaveLength(2);
  const longest = Math.max(...languages.map((each) => sizeOf([each])));
  // The page names the thread that tries rules, and loads it when a rule is written.
  const first = scripts.filter(({ name }) => page.includes(name) && !name.startsWith('explore-'));
  expect(first.length).toBeGreaterThan(0);
  expect(first).not.toContain(languages[0]);
  expect(sizeOf(first) + longest).toBeLessThan(90 * kilobyte);
  // With the outlines of the continents; loaded only for devices that measure positions.
  const map = scripts.filter(({ name }) => name.startsWith('map-'));
  expect(sizeOf(map)).toBeLessThan(40 * kilobyte);
  // Loaded for a month on paper only.
  const record = scripts.filter(({ name }) => name.startsWith('record-page-'));
  expect(sizeOf(record)).toBeLessThan(5 * kilobyte);
  // Loaded once they are opened: settings and profile of a device, menus and dialogs of a list, all profiles.
  const opened = scripts.filter(({ name }) =>
    /^(settings-tab|purposes|views|more-filters|action-dialog|close-dialog|limits-dialog|profile-dialog|profiles-page)-/.test(
      name,
    ),
  );
  expect(sizeOf(opened)).toBeLessThan(16 * kilobyte);
  // The pages of rules (versions, texts, draft or changes: what both use); and the engine (fire, evaluator and
  // warnings: what several of its chunks use), loaded when a rule is written.
  const rules = scripts.filter(({ name }) =>
    /^(rules-page|editor-page|versions|texts|draft|changes)-/.test(name),
  );
  expect(sizeOf(rules)).toBeLessThan(32 * kilobyte);
  const engine = scripts.filter(({ name }) =>
    /^(check|play|fire|explore|evaluator|warnings)-/.test(name),
  );
  expect(sizeOf(engine)).toBeLessThan(80 * kilobyte);
  // With what lays out a graph; loaded for rules of several states.
  const diagram = scripts.filter(({ name }) => name.startsWith('diagram-'));
  expect(diagram).toHaveLength(1);
  expect(sizeOf(diagram)).toBeLessThan(20 * kilobyte);
  const rare = [...map, ...record, ...opened, ...languages, ...rules, ...engine, ...diagram];
  const often = scripts.filter((each) => !rare.includes(each));
  expect(sizeOf(often) + longest).toBeLessThan(140 * kilobyte);
});

test('both languages have the same placeholders', () => {
  const places = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(([place]) => place).sort();
  for (const [one, other] of [
    [en, de],
    [mapEn, mapDe],
    [profilesEn, profilesDe],
    [recordEn, recordDe],
    [rulesEn, rulesDe],
    [changesEn, changesDe],
  ] as Record<string, string>[][])
    for (const [key, text] of Object.entries(one ?? {}))
      expect([key, places(other?.[key] ?? '')]).toEqual([key, places(text)]);
});
