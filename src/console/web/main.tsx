import { render } from 'preact';
import { App } from './app/app.tsx';
import { openSession } from './app/session.ts';
import { startTitle } from './app/shell.tsx';
import { startStream } from './app/stream.ts';
import { applyTheme, registerColors } from './app/preferences.tsx';

registerColors();
applyTheme();
const root = document.getElementById('console');
if (root) render(<App />, root);
startTitle();
void openSession();
startStream();
