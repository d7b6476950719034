import { escapeHtml } from '../lib/escape-html.ts';

/** What a page says; with `button` it asks to be sent back. */
export type PageText = { title: string; text: string; button?: string };

/** A page of the service, without script; its form goes to where the page came from. */
export function pageOf({ title, text, button }: PageText): string {
  const form =
    button === undefined
      ? ''
      : `<form method="post"><button type="submit">${escapeHtml(button)}</button></form>\n`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Sensorium – ${escapeHtml(title)}</title>
<style>
body { font: 18px/1.5 sans-serif; max-width: 32em; margin: 3em auto; padding: 0 1em; color: #222; }
button { font: inherit; padding: .5em 1.5em; }
</style>
<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(text)}</p>
${form}</html>
`;
}
