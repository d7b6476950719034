import { inflateSync } from 'node:zlib';

export type PdfPage = { widthPt: number; heightPt: number; text: string };

/** The pages of a PDF as Chromium writes it: their sizes, and their texts in the order of drawing. */
export function readPdf(file: Buffer): PdfPage[] {
  const source = file.toString('latin1');
  const objects = new Map<string, string>();
  for (const [, id = '', body = ''] of source.matchAll(/(?:^|\n)(\d+) 0 obj\b([^]*?)endobj/g))
    objects.set(id, body);
  const bodyOf = (id = '') => objects.get(id) ?? '';
  const pages = [...objects.values()].filter((body) => /\/Type\s*\/Page\b/.test(body));
  return pages.map((body) => {
    const [, , , width, height] = /\/MediaBox\s*\[(\S+) (\S+) (\S+) (\S+?)\]/.exec(body) ?? [];
    const [, resources] = /\/Resources\s+(\d+) 0 R/.exec(body) ?? [];
    const own = resources === undefined ? body : bodyOf(resources);
    const [, listed] = /\/Font\s+(\d+) 0 R/.exec(own) ?? [];
    const [, inline = ''] = /\/Font\s*<<([^]*?)>>/.exec(own) ?? [];
    const fonts = new Map(
      [...(listed === undefined ? inline : bodyOf(listed)).matchAll(/\/(F\d+) (\d+) 0 R/g)].map(
        ([, name = '', id]) => {
          const [, map] = /\/ToUnicode (\d+) 0 R/.exec(bodyOf(id)) ?? [];
          return [name, lettersOf(streamOf(bodyOf(map)))] as const;
        },
      ),
    );
    const [, content] = /\/Contents\s+(\d+) 0 R/.exec(body) ?? [];
    const text = textOf(streamOf(bodyOf(content)), fonts);
    return { widthPt: Number(width), heightPt: Number(height), text };
  });
}

function streamOf(body: string): string {
  const [, data] = /stream\r?\n([^]*?)\r?\nendstream/.exec(body) ?? [];
  if (data === undefined) return '';
  const bytes = Buffer.from(data, 'latin1');
  return /\/FlateDecode/.test(body) ? inflateSync(bytes).toString('latin1') : data;
}

const numberOf = (hex: string) => Number.parseInt(hex, 16);
const letterOf = (hex: string) => Buffer.from(hex, 'hex').swap16().toString('utf16le');

/** What each glyph stands for. */
function lettersOf(map: string): Map<number, string> {
  const letters = new Map<number, string>();
  for (const [, lines = ''] of map.matchAll(/beginbfchar([^]*?)endbfchar/g))
    for (const [, glyph = '', letter = ''] of lines.matchAll(/<(\w+)>\s*<(\w+)>/g))
      letters.set(numberOf(glyph), letterOf(letter));
  for (const [, lines = ''] of map.matchAll(/beginbfrange([^]*?)endbfrange/g))
    for (const [, from = '', to = '', letter = ''] of lines.matchAll(
      /<(\w+)>\s*<(\w+)>\s*<(\w+)>/g,
    ))
      for (let glyph = numberOf(from); glyph <= numberOf(to); glyph += 1)
        letters.set(glyph, String.fromCodePoint(numberOf(letter) + glyph - numberOf(from)));
  return letters;
}

function textOf(content: string, fonts: ReadonlyMap<string, Map<number, string>>): string {
  let letters: ReadonlyMap<number, string> = new Map();
  let text = '';
  for (const [, font, glyphs, ends] of content.matchAll(
    /\/(F\d+) \S+ Tf|<([0-9A-Fa-f]+)>|(\bET\b)/g,
  )) {
    if (font !== undefined) letters = fonts.get(font) ?? new Map();
    if (ends !== undefined) text += ' ';
    for (const [glyph] of (glyphs ?? '').matchAll(/.{4}/g))
      text += letters.get(numberOf(glyph)) ?? '';
  }
  return text;
}
