import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const projectDir = new URL('../../', import.meta.url);

export function readProjectFile(path: string): string {
  return readFileSync(new URL(path, projectDir), 'utf8');
}

export function pathOf(path: string): string {
  return fileURLToPath(new URL(path, projectDir));
}

/** A step of the tour: its title, the lines to type and the lines they print. */
export type Step = { title: string; commands: string; output: string };

/** The steps as docs/tour.md shows them. */
export function readShownSteps(): Step[] {
  return stepsOf(readProjectFile('docs/tour.md')).map(({ title, text }) => ({
    title,
    commands: blocksOf(text, 'sh').join('\n'),
    output: blocksOf(text, 'text').join('\n'),
  }));
}

/** The steps as docs/tour.sh runs them. */
export function readScriptSteps(): Omit<Step, 'output'>[] {
  const [, ...steps] = readProjectFile('docs/tour.sh').split(/^# --- /m);
  return steps.map((step) => {
    const [title = '', ...lines] = step.split('\n');
    return { title, commands: lines.join('\n').trim() };
  });
}

/** The text below a second-level heading of a page; README.md by default. */
export function getSection(title: string, page = 'README.md'): string {
  const sections = readProjectFile(page).split(/^## /m);
  const text = sections.find((section) => section.startsWith(`${title}\n`));
  if (text === undefined) throw new Error(`${page} has no section "${title}".`);
  return text;
}

function stepsOf(page: string): { title: string; text: string }[] {
  const [, ...parts] = page.split(/^## /m);
  return parts.map((text) => ({ title: text.slice(0, text.indexOf('\n')), text }));
}

/** The code blocks of a language. */
export function blocksOf(markdown: string, language: string): string[] {
  const blocks = markdown.matchAll(/^```(\w+)\n(.*?)\n```$/gms);
  return [...blocks].filter((block) => block[1] === language).map((block) => block[2] ?? '');
}
