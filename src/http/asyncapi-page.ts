/** Shows an AsyncAPI document as a plain page: its description, and each of its parts as it is written. */
export function asyncApiPage(document: object): string {
  const parts = asObject(document);
  const info = asObject(parts['info']);
  const channels = Object.entries(asObject(parts['channels']));
  const schemas = Object.entries(asObject(asObject(parts['components'])['schemas']));
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sensorium – MQTT reference</title>
<style>
body { font: 16px/1.5 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222; }
pre { background: #f4f4f4; padding: 1em; overflow: auto; font-size: 13px; }
h2 { border-bottom: 1px solid #ccc; margin-top: 2em; } code { background: #f4f4f4; }
.text { white-space: pre-wrap; }
</style>
<h1>${escape(info['title'] ?? 'MQTT')}</h1>
<p>The same as an <a href="/docs/mqtt.json">AsyncAPI document</a>. HTTP has <a href="/docs">its own reference</a>.</p>
<div class="text">${escape(info['description'] ?? '')}</div>
${channels.map(([name, channel]) => section(name, asObject(channel))).join('')}
${schemas.length > 0 ? '<h2>Schemas</h2>' : ''}
${schemas.map(([name, schema]) => `<h3 id="${escape(name)}">${escape(name)}</h3>${code(schema)}`).join('')}
</html>
`;
}

function section(name: string, channel: Record<string, unknown>): string {
  const { address, description, summary, ...rest } = channel;
  return `<h2>${escape(name)}</h2>
<p><code>${escape(address ?? '')}</code></p>
<div class="text">${escape(summary ?? '')}${escape(description ?? '')}</div>
${code(rest)}`;
}

function code(value: unknown): string {
  return `<pre>${escape(JSON.stringify(value, null, 2))}</pre>`;
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function escape(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
