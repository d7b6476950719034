import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Environment } from '../../src/environment.ts';
import { pathOf, readProjectFile, readScriptSteps, readShownSteps } from './readme.ts';

const readme = readProjectFile('README.md');

describe('README.md', () => {
  it('shows the commands of docs/tour.sh, step by step', () => {
    const shown = readShownSteps().map(({ title, commands }) => ({ title, commands }));
    expect(shown.length).toBeGreaterThan(5);
    expect(shown).toEqual(readScriptSteps());
  });

  it('lists every environment variable with its default', () => {
    const [, table = ''] = /<!-- environment: begin -->(.*?)<!-- environment: end -->/s.exec(
      readme,
    ) ?? [''];
    const rows = table
      .split('\n')
      .filter((line) => line.startsWith('| `'))
      .map((line) => line.split('|').map((cell) => cell.trim()));
    const expected = Object.entries(Environment.shape).map(([name, schema]) => {
      const byDefault = schema.safeParse(undefined).data;
      const shown = byDefault === undefined ? '' : `\`${String(byDefault)}\``;
      return ['', `\`${name}\``, shown, schema.description ?? '', ''];
    });
    expect(rows).toEqual(expected);
  });

  it('links only to what is there', () => {
    const links = [...readme.matchAll(/\]\(([^)#]+)(#[^)]*)?\)/g)].map((match) => match[1] ?? '');
    const local = links.filter((link) => !link.includes('://'));
    expect(local.length).toBeGreaterThan(0);
    expect(local.filter((link) => !existsSync(pathOf(link)))).toEqual([]);
  });

  it('refers only to headings that it has', () => {
    const headings = [...readme.matchAll(/^#+ (.*)$/gm)].map((match) => anchorOf(match[1] ?? ''));
    const anchors = [...readme.matchAll(/\]\(#([^)]*)\)/g)].map((match) => match[1] ?? '');
    expect(anchors.length).toBeGreaterThan(0);
    expect(anchors.filter((anchor) => !headings.includes(anchor))).toEqual([]);
  });

  it('names only scripts that package.json has', () => {
    const { scripts } = JSON.parse(readProjectFile('package.json')) as {
      scripts: Record<string, string>;
    };
    const named = [...readme.matchAll(/npm run ([a-z:]+)/g)].map((match) => match[1] ?? '');
    expect(named).toContain('simulate');
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });
});

/** As GitHub derives it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}
