import { createHash } from 'node:crypto';

/** How pages without script look: as the console, whose tokens these are. All text has 4.5:1 at least. */
export const pageStyle = `
:root {
  color-scheme: light dark;
  --bg: light-dark(#f7f8fa, #101317);
  --panel: light-dark(#fff, #181c21);
  --ink: light-dark(#16191d, #e8eaed);
  --border: light-dark(#767f8a, #7f8893);
  --line: light-dark(#dfe3e8, #2c323a);
  --accent: light-dark(#1558d6, #8ab4f8);
  --on-accent: light-dark(#fff, #101317);
}
* { box-sizing: border-box; }
body {
  display: grid; align-content: center; justify-items: center; min-height: 100vh; margin: 0; padding: 24px 12px;
  background: var(--bg); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
}
main {
  width: min(100%, 420px); padding: 32px; border: 1px solid var(--line); border-radius: 12px;
  background: var(--panel);
}
.brand { display: flex; align-items: center; gap: 8px; margin: 0 0 24px; font-size: 17px; font-weight: 650; }
.mark { display: grid; place-items: center; width: 28px; height: 28px; border-radius: 8px; background: var(--accent); }
svg { width: 18px; height: 18px; fill: none; stroke: var(--on-accent); stroke-width: 2.2; }
h1 { margin: 0; font-size: 24px; font-weight: 650; line-height: 1.25; }
p { margin: 8px 0 0; }
form { display: grid; gap: 16px; margin-top: 24px; }
label { display: grid; gap: 4px; font-size: 13px; font-weight: 600; }
input, button, .button { width: 100%; min-height: 44px; border: 1px solid var(--border); border-radius: 8px; font: inherit; }
input { padding: 0 12px; background: var(--panel); color: inherit; font-weight: 400; font-size: 16px; }
button, .button {
  display: grid; place-items: center; padding: 0 16px; border-color: var(--accent); background: var(--accent);
  color: var(--on-accent); font-weight: 600; text-decoration: none; cursor: pointer;
}
.button { margin-top: 24px; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
@media (max-width: 699px) { body { align-content: start; } main { padding: 24px 16px; } }
@media (forced-colors: active) { .mark { border: 1px solid CanvasText; } svg { stroke: CanvasText; } }
`;

/** Names that style alone in a Content-Security-Policy. */
export const styleSource = `'sha256-${createHash('sha256').update(pageStyle).digest('base64')}'`;
